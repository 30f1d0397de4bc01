package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"rdma_exporter/internal/state"
)

// As much as a bound says is taken, and no more.
func TestReadBounds(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, tc := range []struct {
		name  string
		most  int
		write func(w *Writer, n int) error
	}{
		{"bytes of a verb", 48, func(w *Writer, n int) error { return w.Begin("ibv_" + x(n-4)) }},
		{"bytes of a word", maxLabel, func(w *Writer, n int) error { return w.Probe(state.Probe{Name: x(n), Status: state.StatusOK}) }},
		{"calls", maxCalls, func(w *Writer, n int) error {
			var errs []error
			for range n {
				errs = append(errs, w.Call(state.Call{Verb: "ibv_x"}))
			}
			return errors.Join(errs...)
		}},
		{"calls that failed", maxCalls, func(w *Writer, n int) error {
			var errs []error
			for range n {
				errs = append(errs, w.Call(state.Call{Verb: "ibv_x", Errno: "EIO"}))
			}
			return errors.Join(errs...)
		}},
		{"limits of a device", maxLimits, func(w *Writer, n int) error {
			var d state.Device
			for i := range n {
				d.Limits = append(d.Limits, state.Limit{Name: fmt.Sprint("max_", i)})
			}
			return w.Device(d)
		}},
		{"extended attributes of a device", maxLimits, func(w *Writer, n int) error {
			var d state.Device
			for i := range n {
				d.Extended = append(d.Extended, state.Limit{Name: fmt.Sprint("max_", i)})
			}
			return w.Device(d)
		}},
		{"ports of a device", maxPorts, func(w *Writer, n int) error {
			var d state.Device
			for i := range n {
				d.Ports = append(d.Ports, state.Port{Number: i + 1})
			}
			return w.Device(d)
		}},
		{"bytes of firmware", maxLabel, func(w *Writer, n int) error { return w.Device(state.Device{Firmware: x(n)}) }},
		{"bytes of a link layer", maxLabel, func(w *Writer, n int) error { return w.Device(state.Device{Ports: []state.Port{{LinkLayer: x(n)}}}) }},
		{"the port of a way", maxPorts, func(w *Writer, n int) error {
			return w.Probe(state.Probe{Name: "n", Status: state.StatusOK, Ways: []state.Way{{Path: state.PathFlush}, {Path: state.PathFlush, Port: n}}})
		}},
		{"contracts of a plan", maxContracts, func(w *Writer, n int) error {
			var plan []state.Planned
			for i := range n {
				plan = append(plan, state.Planned{Name: fmt.Sprint("c", i), Severity: state.SeverityInfo})
			}
			return w.Plan(plan)
		}},
		{"the port of a turn", maxPorts, func(w *Writer, n int) error { return w.Turn(state.Turn{Object: "cq", Port: n}) }},
		{"the vector of a turn", maxVector, func(w *Writer, n int) error { return w.Turn(state.Turn{Object: "cq", Vector: n}) }},
		{"bytes of an identity", maxLabel, func(w *Writer, n int) error { return w.Facts(state.Facts{Identity: state.Identity{Libraries: x(n)}}) }},
		{"types that there are facts about", maxFacts, func(w *Writer, n int) error {
			var f state.Facts
			for i := range n {
				f.Inline = append(f.Inline, state.InlineMax{Type: fmt.Sprint("t", i)})
			}
			return w.Facts(f)
		}},
		{"ways that there are facts about", maxFacts, func(w *Writer, n int) error {
			var f state.Facts
			for i := range n {
				f.Ways = append(f.Ways, state.KnownWay{Way: state.Way{Path: state.PathFlush, Port: i}, Among: "x"})
			}
			return w.Facts(f)
		}},
		{"a list of an inventory", maxItems, func(w *Writer, n int) error {
			var i state.Inventory
			for id := range n {
				i.Left = append(i.Left, state.Left{Context: state.Context{ID: uint32(id)}, Type: "qp"})
			}
			return w.Inventory(i)
		}},
		{"types of object of an inventory", maxItems, func(w *Writer, n int) error {
			var i state.Inventory
			for typ := range n {
				i.Others = append(i.Others, state.TypeCount{Type: fmt.Sprint("t", typ)})
			}
			return w.Inventory(i)
		}},
		{"a count", maxCount, func(w *Writer, n int) error { return w.Inventory(state.Inventory{PassingErrors: int64(n)}) }},
		{"devices whose hardware is told", MaxDevices, func(w *Writer, n int) error {
			var errs []error
			for i := range n {
				errs = append(errs, w.Hardware(state.Hardware{Device: fmt.Sprint("d", i)}))
			}
			return errors.Join(errs...)
		}},
		{"bytes of a name", maxPath, func(w *Writer, n int) error {
			return w.Inventory(state.Inventory{Owners: []state.Owner{{PID: 1, Cgroup: x(n)}}})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			read := func(n int) error {
				var b strings.Builder
				w := NewWriter(&b)
				if err := errors.Join(tc.write(w, n), w.End(End{})); err != nil {
					t.Fatal(err)
				}
				return Read(strings.NewReader(b.String()), new(state.Run))
			}
			if err := read(tc.most); err != nil {
				t.Errorf("%d: %v", tc.most, err)
			}
			if err := read(tc.most + 1); err == nil {
				t.Errorf("%d are taken", tc.most+1)
			}
		})
	}
}

// A word has the letters, the digits and a few signs, and nothing that is beside them.
func TestReadWords(t *testing.T) {
	t.Parallel()
	read := func(name string) error {
		var b strings.Builder
		w := NewWriter(&b)
		if err := errors.Join(w.Probe(state.Probe{Name: name, Status: state.StatusOK}), w.End(End{})); err != nil {
			t.Fatal(err)
		}
		return Read(strings.NewReader(b.String()), new(state.Run))
	}
	if err := read("AZaz09_-. "); err != nil {
		t.Error(err)
	}
	for _, sign := range []string{"@", "[", "`", "{", "/", ":", "é", "\n", "\x00"} {
		if err := read("a" + sign); err == nil {
			t.Errorf("%q is taken", sign)
		}
	}
}

// What a probe says of ways, of inline data and of what is known becomes labels, too.
func TestReadRejectsOfProbes(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]state.Probe{
		"a way of no path":             {Ways: []state.Way{{Path: "wormhole", Port: 1}}},
		"a way of port -1":             {Ways: []state.Way{{Path: state.PathFlush, Port: -1}}},
		"a way twice":                  {Ways: []state.Way{{Path: state.PathFlush, Port: 1, By: "a"}, {Path: state.PathFlush, Port: 1, By: "b"}}},
		"a result that there is not":   {InlineSends: []state.InlineSend{{Type: "rc", Result: "lost"}}},
		"inline data sent twice":       {InlineSends: []state.InlineSend{{Type: "rc", Result: state.InlineSent}, {Type: "rc", Result: state.InlineSent}}},
		"a shortfall without a source": {Known: []state.KnownShortfall{{Contract: "c", Fact: "f"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.Name, p.Status = "n", state.StatusOK
			var b strings.Builder
			w := NewWriter(&b)
			if err := errors.Join(w.Probe(p), w.End(End{})); err != nil {
				t.Fatal(err)
			}
			var line *LineError
			if err := Read(strings.NewReader(b.String()), new(state.Run)); !errors.As(err, &line) || line.Line != 1 {
				t.Errorf("read with %v, want an error of line 1", err)
			}
		})
	}
}

// A text that has just the most bytes is kept whole.
func TestReadKeepsTheLongestText(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", maxText)
	var b strings.Builder
	if err := NewWriter(&b).End(End{Error: text}); err != nil {
		t.Fatal(err)
	}
	var run state.Run
	if err := Read(strings.NewReader(b.String()), &run); err != nil || run.Error != text {
		t.Errorf("%d bytes, %v", len(run.Error), err)
	}
}

// An error says where the report ends, and in what.
func TestReadSaysWhere(t *testing.T) {
	t.Parallel()
	const begin = `{"begin":"ibv_x"}` + "\n"
	for _, tc := range []struct{ name, text, want string }{
		{"between lines", begin, ErrTruncated.Error()},
		{"in a line", begin + "hello", ErrTruncated.Error() + `: line 2 is cut off ("hello")`},
		{"in a long line", begin + strings.Repeat("x", MaxLine+1), fmt.Sprintf("%v: line 2 has more than %d bytes", ErrTooLarge, MaxLine)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if err := Read(strings.NewReader(tc.text), new(state.Run)); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
