package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

const endLine = `{"end":{}}` + "\n"

// fullReport is a report with everything that each key can have, but a second end.
func fullReport(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for key := range lineFields() {
		b.Write(append(mustJSON(t, filled(t, key)), '\n'))
	}
	return b.String()
}

// TestRoundTrip verifies that each line that a Writer writes is one that Read reads.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for key := range lineFields() {
		l := filled(t, key)
		name := reflect.TypeFor[Line]().Field(key).Name
		arg := reflect.Indirect(reflect.ValueOf(l).Elem().Field(key))
		var b strings.Builder
		running.Check(t, NewWriter(&b).Send(*l))
		if want := string(mustJSON(t, l)) + "\n"; b.String() != want {
			t.Errorf("%s wrote %s, want %s", name, b.String(), want)
		}
		run := running.Must(readLine(t, l))(t)
		switch value := string(mustJSON(t, arg.Interface())); name {
		case "Call":
			if !slices.Equal(run.Calls, []state.Call{*l.Call}) {
				t.Errorf("read %+v", run.Calls)
			}
		case "End":
			if got := (End{Error: run.Error, Verb: run.FailedVerb, Errno: run.Errno, MaxRSS: run.MaxRSS}); got != *l.End {
				t.Errorf("read %+v", got)
			}
		case "Depth":
			if run.Depth != l.Depth.Depth || run.Sizes != l.Depth.Sizes {
				t.Errorf("read %+v", run)
			}
		default:
			if got := string(mustJSON(t, run)); !strings.Contains(got, value) {
				t.Errorf("%s: read %s, which lacks %s", name, got, value)
			}
		}
	}
}

// TestReadArrives verifies that a report may arrive in any pieces and end in any way.
func TestReadArrives(t *testing.T) {
	t.Parallel()
	text := fullReport(t)
	for name, r := range map[string]io.Reader{
		"byte by byte":  iotest.OneByteReader(strings.NewReader(text)),
		"data with EOF": iotest.DataErrReader(strings.NewReader(text)),
		"blank lines":   strings.NewReader(text + "\n \r\n\t"),
		"pipe closed":   io.MultiReader(strings.NewReader(text), iotest.ErrReader(os.ErrClosed)),
		"CR LF":         strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n")),
	} {
		var want, got state.Run
		if err := errors.Join(Read(strings.NewReader(text), &want), Read(r, &got)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read %+v, want %+v", name, got, want)
		}
	}
}

// TestReadTruncatedAnywhere verifies that wherever a report is cut off, the error says so and
// nothing is made up: at each byte of each line alone, and in each line after those before.
func TestReadTruncatedAnywhere(t *testing.T) {
	t.Parallel()
	text := fullReport(t)
	at := 0
	for line := range strings.Lines(text) {
		for n := range line {
			var run state.Run
			if err := Read(strings.NewReader(line[:n]), &run); !errors.Is(err, ErrTruncated) || !reflect.DeepEqual(run, state.Run{}) {
				t.Fatalf("cut off at byte %d of %s: %v, %+v", n, line, err, run)
			}
		}
		for _, n := range []int{0, 1, len(line) / 2, len(line) - 1} {
			if err := Read(strings.NewReader(text[:at+n]), new(state.Run)); !errors.Is(err, ErrTruncated) {
				t.Fatalf("cut off at byte %d: %v", at+n, err)
			}
		}
		at += len(line)
	}
}

// TestReadRefuses verifies what is no report. What is out of bounds in a line is that of
// TestEverythingIsBounded.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	lines := func(n int, line string) string { return strings.Repeat(line+"\n", n) }
	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+"\n", i)
		}
		return b.String()
	}
	const call = `{"call":{"verb":"ibv_x","ns":1}}`
	const undestroyed = `{"undestroyed":{"type":"cq","errno":"EBUSY"}}`
	for _, tt := range []struct {
		name, text string
		// line is the line that the error names. Zero means none.
		line int
		// is must be matched by the error. Nil means any.
		is error
	}{
		{"nothing", "", 0, ErrTruncated},
		{"no newline", "hello", 0, ErrTruncated},
		{"end without newline", `{"end":{}}`, 0, ErrTruncated},
		{"words", "hello\n", 1, nil},
		{"binary", "\x7fELF\x00\xff\n", 1, nil},
		{"empty line", "\n" + endLine, 1, nil},
		{"second line", `{"begin":"ibv_x"}` + "\n{\n", 2, nil},
		{"array", "[]\n", 1, nil},
		{"null", "null\n", 1, nil},
		{"no key", "{}\n", 1, nil},
		{"null key", `{"end":null}` + "\n", 1, nil},
		{"unknown key", `{"start":1}` + "\n", 1, nil},
		{"unknown attribute", `{"device":{"colour":"red"}}` + "\n", 1, nil},
		{"two keys", `{"begin":"ibv_x","end":{}}` + "\n", 1, nil},
		{"two values", `{"end":{}}{"end":{}}` + "\n", 1, nil},
		{"a value and a brace", `{"end":{}}}` + "\n", 1, nil},
		{"wrong type", `{"end":7}` + "\n", 1, nil},
		{"half an event", `{"events":[{"type":"port_err","count":0.5}]}` + "\n", 1, nil},
		{"deep", `{"device":` + strings.Repeat("[", 1<<17) + "\n", 1, nil},
		{"text after the end", endLine + "bye\n", 2, nil},
		{"text without newline after the end", endLine + "\nbye", 3, nil},
		{"two ends", endLine + endLine, 2, nil},
		{"presumed of none", `{"presumed":{"contract":{"name":"c","severity":"info","verdict":"holds"}}}` + "\n", 1, nil},
		{"presumed of another", `{"checking":"a"}` + "\n" + `{"presumed":{"contract":{"name":"b","severity":"info","verdict":"holds"}}}` + "\n", 2, nil},
		{"a limit in both lists", `{"device":{"limits":[{"name":"a"}],"extended":[{"name":"a"}]}}` + "\n", 1, nil},
		{"probe twice", lines(2, `{"probe":{"name":"cq","status":"ok"}}`), 2, nil},
		{"contract twice", lines(2, `{"contract":{"name":"c","severity":"info","verdict":"holds"}}`), 2, nil},
		{"hardware twice", lines(2, `{"hardware":{"device":"a"}}`), 2, nil},
		{"refused twice", lines(2, `{"refused":{"type":"qp","verb":"ibv_create_qp","errno":"ENOMEM","objects":1}}`), 2, nil},
		{"too many samples", `{"probe":{"name":"n","status":"ok","latencies":[{"path":"flush","mode":"any","samples_ns":[1` + strings.Repeat(",1", 1<<14) + "]}]}}\n", 1, ErrTooLarge},
		{"too many arms", `{"probe":{"name":"n","status":"ok","latencies":[{"path":"flush","mode":"any","arms_ns":[1` + strings.Repeat(",1", 1<<14) + "]}]}}\n", 1, ErrTooLarge},
		{"too many calls", lines(maxCalls+1, call), maxCalls + 1, ErrTooLarge},
		{"too many probes", numbered(maxProbes+1, `{"probe":{"name":"p%d","status":"ok"}}`), maxProbes + 1, ErrTooLarge},
		{"too many contracts", numbered(maxContracts+1, `{"contract":{"name":"c%d","severity":"info","verdict":"holds"}}`), maxContracts + 1, ErrTooLarge},
		{"too many devices", numbered(MaxDevices+1, `{"hardware":{"device":"d%d"}}`), MaxDevices + 1, ErrTooLarge},
		{"too many undestroyed", lines(maxList+1, undestroyed), maxList + 1, ErrTooLarge},
		{"too many events", lines(maxList+1, `{"events":[{"type":"port_err","count":1}]}`), maxList + 1, ErrTooLarge},
		{"long line without newline", strings.Repeat("x", MaxLine+1), 0, ErrTooLarge},
		{"long line", strings.Repeat("x", MaxLine+1) + "\n", 0, ErrTooLarge},
		{"long line after the end", endLine + strings.Repeat(" ", MaxLine+1) + "\n", 0, ErrTooLarge},
		{"large", lines(MaxReport>>16+1, `{"begin":"ibv_xyz"`+strings.Repeat(" ", 1<<16)+"}"), 0, ErrTooLarge},
		{"large after the end", endLine + lines(MaxReport>>16, strings.Repeat(" ", 1<<16)), 0, ErrTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var run state.Run
			err := Read(strings.NewReader(tt.text), &run)
			if err == nil || tt.line != 0 && !strings.HasPrefix(err.Error(), fmt.Sprintf("line %d of the report: ", tt.line)) {
				t.Errorf("error %v, want one for line %d", err, tt.line)
			}
			if tt.is != nil && !errors.Is(err, tt.is) || tt.is == nil && (errors.Is(err, ErrTruncated) || errors.Is(err, ErrTooLarge)) {
				t.Errorf("error %v, want %v", err, tt.is)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
		})
	}
}

// TestReadInFlight verifies which verb and which contract a child was in when its report ends.
func TestReadInFlight(t *testing.T) {
	t.Parallel()
	const (
		begin     = `{"begin":"ibv_create_cq"}` + "\n"
		call      = `{"call":{"verb":"ibv_create_cq","ns":1}}` + "\n"
		destroy   = `{"begin":"ibv_destroy_cq"}` + "\n"
		checkingA = `{"checking":"a"}` + "\n"
		presumeA  = `{"presumed":{"contract":{"name":"a","severity":"critical","verdict":"violated"}}}` + "\n"
		verdictA  = `{"contract":{"name":"a","severity":"critical","verdict":"holds"}}` + "\n"
		checkingB = `{"checking":"b"}` + "\n"
	)
	for text, want := range map[string]string{
		"":                                   "verb= checking= presumed=false",
		begin:                                "verb=ibv_create_cq checking= presumed=false",
		begin + call:                         "verb= checking= presumed=false",
		begin + call + destroy:               "verb=ibv_destroy_cq checking= presumed=false",
		begin + call + destroy[:9]:           "verb= checking= presumed=false",
		begin + "Segmentation fault\n":       "verb=ibv_create_cq checking= presumed=false",
		begin + `{"device":{}}` + "\n":       "verb=ibv_create_cq checking= presumed=false",
		checkingA + begin:                    "verb=ibv_create_cq checking=a presumed=false",
		checkingA + verdictA + checkingB:     "verb= checking=b presumed=false",
		checkingA + presumeA:                 "verb= checking=a presumed=true",
		checkingA + presumeA[:20]:            "verb= checking=a presumed=false",
		checkingA + presumeA + verdictA:      "verb= checking= presumed=false",
		checkingA + presumeA + checkingB:     "verb= checking=b presumed=false",
		checkingA + verdictA + checkingB[:9]: "verb= checking= presumed=false",
	} {
		var run state.Run
		if err := Read(strings.NewReader(text), &run); err == nil {
			t.Errorf("%q: no error for a report without an end", text)
		}
		if got := fmt.Sprintf("verb=%s checking=%s presumed=%t", run.Verb, run.InProgress, run.Provisional != nil); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// A report may be just as large as the bounds say.
func TestReadAtTheBounds(t *testing.T) {
	t.Parallel()
	text := `{"end":{}` + strings.Repeat(" ", MaxLine-len(endLine)) + "}\n"
	// What follows the end is read, and costs little.
	text += strings.Repeat(strings.Repeat(" ", 1<<16-1)+"\n", (MaxReport-MaxLine)>>16)
	if len(text) != MaxReport {
		t.Fatalf("the test's report has %d bytes", len(text))
	}
	var run state.Run
	if err := Read(strings.NewReader(text), &run); err != nil {
		t.Error(err)
	}
	if err := Read(strings.NewReader(text+"\n"), &run); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
}

// failing fails at its third write.
type failing struct{ n int }

var errFull = errors.New("full")

func (f *failing) Write(b []byte) (int, error) {
	if f.n++; f.n == 3 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWriterKeepsItsError(t *testing.T) {
	t.Parallel()
	f := &failing{}
	w := NewWriter(f)
	for i := range 5 {
		if err := w.Send(Line{Begin: "ibv_x"}); errors.Is(err, errFull) != (i >= 2) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if f.n != 3 || !errors.Is(w.Err(), errFull) {
		t.Errorf("%d writes, error %v", f.n, w.Err())
	}
}

func FuzzRead(f *testing.F) {
	full := fullReport(f)
	f.Add([]byte(full))
	f.Add([]byte(full[:len(full)/2]))
	for line := range strings.Lines(full) {
		f.Add([]byte(line + endLine))
	}
	for _, s := range []string{
		"", "{}\n", "[", "\xff\xfe\n", "{\"end\":{}}}\n", `{"BEGIN":"ibv_x"}` + "\n", `{"end":{"error":"\ud800"}}` + "\n",
		`{"call":{"verb":"ibv_x","ns":1e99}}` + "\n", `{"call":{"verb":"ibv_x","ns":9223372036854775807}}` + "\n",
		`{"contract":{"name":"c","severity":"info","verdict":"skipped","reason":"x","checked_at":"2026-03-01T12:00:00Z"}}` + "\n",
		`{"probe":{"name":"n","status":"ok","latencies":[{"path":"flush","mode":"any","samples_ns":[],"arms_ns":null}]}}` + "\n",
		"panic: runtime error\n\ngoroutine 1 [running]:\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var run, slow state.Run
		err := Read(bytes.NewReader(b), &run)
		slowErr := Read(iotest.OneByteReader(bytes.NewReader(b)), &slow)
		if (err == nil) != (slowErr == nil) || !reflect.DeepEqual(run, slow) {
			t.Fatalf("the result depends on how the bytes arrive: %v, %v", err, slowErr)
		}
		if err == nil && !isBounded(&run) {
			t.Fatalf("read %+v", run)
		}
	})
}
