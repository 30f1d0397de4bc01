package supervisor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// child is what a probe run does in these tests.
type depthChild struct {
	firmware string
	// fails makes the probe qp fail, reduced makes the run reduced, and killed makes it hang.
	fails, reduced, killed bool
	portState              string
}

// probed returns the script of a child that was asked for r. Each run finds one actual size
// and, if it is full, one known shortfall.
func (c depthChild) probed(r wire.Request) script {
	identity := state.Identity{Firmware: c.firmware}
	known := r.Facts != nil && r.Facts.Identity == identity
	depth, out := state.DepthFull, ""
	switch {
	case c.reduced:
		depth = state.DepthReduced
		out = lines(wire.Line{Reduced: &state.Reduced{Reason: state.ReducedBusy, Detail: "somebody"}})
	case r.Short && known:
		depth = state.DepthShort
	}
	out += lines(wire.Line{Depth: &wire.Depth{Depth: depth, Sizes: "sizes"}}, wire.Line{Device: &state.Device{
		Firmware: c.firmware, Transport: "InfiniBand",
		Ports: []state.Port{{Number: 1, State: cmp.Or(c.portState, "active"), LinkLayer: "Ethernet"}},
	}})
	if depth == state.DepthFull && !known {
		out += lines(wire.Line{Facts: &state.Facts{Identity: identity}})
	}
	if c.killed {
		return script{output: out, takes: -1}
	}
	qp := state.Probe{Name: "qp", Status: state.StatusOK, QPs: []state.QPSize{{Type: "rc", Profile: "small"}}}
	if depth == state.DepthFull {
		qp.QPs = append(qp.QPs, state.QPSize{Type: "rc", Profile: "large"})
		qp.Known = []state.KnownShortfall{{
			Subject: state.Subject{Object: "inline", QPType: "ud"}, Message: "less", Contract: "qp_at_least_requested", Fact: "f", Source: "s",
		}}
	}
	if c.fails {
		qp.Status = state.StatusFailed
		qp.Failures = []state.Failure{{Subject: state.Subject{Object: "qp", QPType: "rc"}, Verb: "ibv_create_qp", Errno: "EIO", Message: "no"}}
	}
	return script{output: out + lines(wire.Line{Probe: &qp}, wire.Line{End: &wire.End{}})}
}

// newDepthBench returns a bench whose n-th child is as the function says. A full run is due
// every 5 minutes.
func newDepthBench(t *testing.T, child func(n int) depthChild, checks ofContracts) *bench {
	t.Helper()
	var b *bench
	b = benchOf(t, children{checks: checks, next: func(_ string, n int) script {
		return child(n).probed(b.asked(state.KindProbe, n))
	}}, func(c *Config) { c.FullInterval, c.Backoff = 5*time.Minute, c.Interval }, "a")
	return b
}

// depths returns the first letters of the depths of all runs until now.
func (b *bench) depths() string {
	var all strings.Builder
	for _, run := range b.sink.runs("a") {
		all.WriteByte((string(run.Depth) + "-")[0])
	}
	return all.String()
}

// TestDepths verifies which runs are full.
func TestDepths(t *testing.T) {
	t.Parallel()
	at := func(special depthChild, numbers ...int) func(int) depthChild {
		return func(n int) depthChild {
			for _, i := range numbers {
				if n == i {
					return special
				}
			}
			return depthChild{}
		}
	}
	for _, tc := range []struct {
		name     string
		children func(n int) depthChild
		want     string
	}{
		{"by the interval", at(depthChild{}), "fssssfssss"},
		{"a full run that fails", at(depthChild{fails: true}, 0, 1), "fffssssfss"},
		{"a full run that hangs", at(depthChild{killed: true}, 5), "fssssffsss"},
		{"a short run that fails", at(depthChild{fails: true}, 2), "fssssfssss"},
		{"other firmware", func(n int) depthChild { return depthChild{firmware: map[bool]string{true: "2"}[n > 2]} }, "fssfssssfs"},
		{"in use", at(depthChild{reduced: true}, 0, 1, 4, 5, 6, 7), "rrfsrrrrfs"},
		{"a port that went down", func(n int) depthChild { return depthChild{portState: map[bool]string{true: "down"}[n > 1]} }, "fssfssssfs"},
	} {
		subtest(t, tc.name, func(t *testing.T) {
			d := newDepthBench(t, tc.children, nil)
			d.start()
			d.after(20 * time.Minute)
			if got := d.depths(); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestFullStands verifies that the results of a full run stay complete over later runs,
// with the errata of the driver.
func TestFullStands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDepthBench(t, func(n int) depthChild { return depthChild{fails: n == 1, reduced: n == 3, killed: n == 4} }, nil)
		d.start()
		full := stateOf(t, d.Snapshot(), "a").Full
		for n := range 5 {
			dev := stateOf(t, d.Snapshot(), "a")
			results := dev.Probes()
			if len(results) != 1 || len(results[0].Detail.QPs) != 2 || len(results[0].Detail.Known) != 1 {
				t.Errorf("run %d: %+v", n, results)
			}
			wantEqual(t, fmt.Sprint("the full run at run ", n), dev.Full, full)
			wantEqual(t, fmt.Sprint("failures of run ", n), len(results[0].Failures()) > 0, n == 1)
			d.after(time.Minute)
		}
	})
}

// TestProbesChanged verifies that a reload makes a full run due at once, also while a run
// with the old configuration is under way.
func TestProbesChanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDepthBench(t, func(int) depthChild { return depthChild{} }, nil)
		d.start()
		d.after(90 * time.Second)
		wantEqual(t, "before", d.depths(), "fs")
		d.ProbesChanged()
		d.after(0)
		wantEqual(t, "after", d.depths(), "fsf")
		d.after(time.Minute)
		wantEqual(t, "later", d.depths(), "fsfs")
	})
}

// TestContractsOnChange verifies that a contract run is due at once when the device changed.
func TestContractsOnChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		children := func(n int) depthChild { return depthChild{firmware: map[bool]string{false: "1", true: "2"}[n >= 5]} }
		d := newDepthBench(t, children, contractsOnly(checked(time.Second, "notify_any", "holds")))
		d.after(10*time.Minute + 30*time.Second)
		wantEqual(t, "contract runs", fmt.Sprint(d.kids.startsOf(contractsOf("a"))), "[0s 5m0s]")
		wantEqual(t, "changes in the log", d.logs("firmware 2, before 1"), 1)
		d.after(time.Hour)
		wantEqual(t, "contract runs an hour later", len(d.kids.startsOf(contractsOf("a"))), 3)
	})
}

// reducedScript is a child that does as little as possible.
func reducedScript(s script) script {
	s.output = `{"depth":{"depth":"reduced","sizes":"x"}}` + "\n" +
		`{"reduced":{"reason":"busy","detail":"mpirun (process 7) holds queue pairs"}}` + "\n" + s.output
	return s
}

// TestPutOff verifies that a contract run waits while the device is in use.
func TestPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := func(n int) bool { return n < 2 || n >= 4 && n < 121 }
		b := newContractBench(t, func(_ string, n int) script {
			if busy(n) {
				return reducedScript(scriptOK(time.Second))
			}
			return scriptOK(time.Second)
		}, contractsOnly(
			checked(time.Second, "x", "holds"),
			reducedScript(script{output: `{"end":{}}` + "\n", takes: time.Second}),
			checked(time.Second, "x", "violated"),
		), nil, "a")
		contracts := func() *state.Contracts { return stateOf(b.t, b.Snapshot(), "a").Contracts }
		putOff := func() bool {
			c := contracts()
			return c != nil && c.PutOff != nil && c.PutOff.Detail == "mpirun (process 7) holds queue pairs"
		}
		b.start()

		b.after(90 * time.Second)
		if !putOff() || contracts().Last != nil || len(b.kids.startsOf(contractsOf("a"))) != 0 {
			t.Errorf("busy from the start: %+v after %v", contracts(), b.kids.startsOf(contractsOf("a")))
		}
		// The third run is not reduced.
		b.after(time.Minute)
		if got := b.verdicts("a"); putOff() || !slices.Equal(got, []string{"x", "holds"}) {
			t.Errorf("idle: %q, put off %t", got, putOff())
		}
		checkedAt := contracts().Last.Started
		// Runs are reduced again, which is nothing to a contract run that is not due.
		b.after(10 * time.Minute)
		if putOff() || stateOf(t, b.Snapshot(), "a").Last.Reduced == nil {
			t.Error("put off though it is not due")
		}
		// It is due after an hour, sees for itself, and waits.
		b.after(80 * time.Minute)
		if got := b.verdicts("a"); !putOff() || !slices.Equal(got, []string{"x", "holds"}) || len(b.kids.startsOf(contractsOf("a"))) != 2 {
			t.Errorf("busy when it is due: %q, put off %t, contract runs at %v", got, putOff(), b.kids.startsOf(contractsOf("a")))
		}
		if last := contracts().Last; last == nil || !last.Started.Equal(checkedAt) || last.Reduced != nil {
			t.Errorf("the last contract run is %+v", last)
		}
		b.after(40 * time.Minute)
		if got := b.verdicts("a"); putOff() || !slices.Equal(got, []string{"x", "violated"}) || len(b.kids.startsOf(contractsOf("a"))) != 3 {
			t.Errorf("idle again: %q, put off %t, contract runs at %v", got, putOff(), b.kids.startsOf(contractsOf("a")))
		}
		b.end()
		for message, times := range map[string]int{"Device left alone": 2, "Device is probed in full again": 2, "mpirun (process 7)": 2} {
			if got := b.logs(message); got != times {
				t.Errorf("%q was logged %d times, want %d:\n%s", message, got, times, b.log.String())
			}
		}
	})
}

func TestPutOffInMidst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newContractBench(t, func(_ string, n int) script {
			if n == 1 {
				return reducedScript(scriptOK(time.Second))
			}
			return scriptOK(time.Second)
		}, contractsOnly(
			crashes("y", "x", "holds"),
			reducedScript(script{output: `{"end":{}}` + "\n", takes: time.Second}),
			checked(time.Second, "x", "holds", "y", "holds"),
		), nil, "a")
		b.after(30 * time.Second)
		c := stateOf(t, b.Snapshot(), "a").Contracts
		if got := b.verdicts("a"); c.PutOff == nil || !slices.Equal(got, []string{"x", "holds", "y", "skipped:crashed"}) {
			t.Errorf("%q, put off %v", got, c.PutOff)
		}
		b.after(2 * time.Minute)
		if got := b.verdicts("a"); !slices.Equal(got, []string{"x", "holds", "y", "holds"}) || b.done(2) != nil {
			t.Errorf("%q, without %q", got, b.done(2))
		}
	})
}
