package supervisor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/golden"
)

// checking returns the lines of a child that checks contracts, given as name and verdict. The
// reason of a skip follows a colon. A known violation begins with "known ".
func checking(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		c := state.Contract{
			Name: pairs[i], Severity: state.SeverityCritical,
			Asked: "asked of " + pairs[i], Expected: "expected of " + pairs[i], Observed: "observed of " + pairs[i],
		}
		verdict, reason, _ := strings.Cut(pairs[i+1], ":")
		verdict, c.Known = strings.CutPrefix(verdict, "known ")
		c.Verdict, c.Reason = state.Verdict(verdict), state.SkipReason(reason)
		if c.Known {
			c.Fact, c.Source = "fact of "+c.Name, "source of "+c.Name
		}
		b.WriteString(lines(wire.Line{InProgress: c.Name}, wire.Line{Contract: &c}))
	}
	return b.String()
}

// checked is a child that checks contracts and completes.
func checked(takes time.Duration, pairs ...string) script {
	return script{output: checking(pairs...) + `{"end":{}}` + "\n", takes: takes}
}

// hangs is a child that hangs in a verb while it checks a contract.
func hangs(contract string, pairs ...string) script {
	return script{output: checking(pairs...) + `{"checking":"` + contract + `"}` + "\n" + `{"begin":"ibv_get_cq_event"}` + "\n", takes: -1}
}

func crashes(contract string, pairs ...string) script {
	s := hangs(contract, pairs...)
	s.takes, s.exit = time.Second, child.Exit{Signal: 11}
	return s
}

// presumes makes a child that hangs or crashes while it checks y report a provisional violation
// first.
func presumes(s script, proven bool) script {
	provisional := lines(wire.Line{Provisional: &state.ProvisionalVerdict{Proven: proven, Contract: state.Contract{
		Name: "y", Severity: state.SeverityWarning, Verdict: state.VerdictViolated, Observed: "it was the end of the process",
	}}})
	checking := `{"checking":"y"}` + "\n"
	s.output = strings.Replace(s.output, checking, checking+provisional, 1)
	return s
}

func ends(e child.Exit, contract string, pairs ...string) script {
	s := crashes(contract, pairs...)
	s.exit = e
	return s
}

// inNoVerb makes a child hang or crash outside a verb.
func inNoVerb(s script) script {
	s.output = strings.Replace(s.output, `{"begin":"ibv_get_cq_event"}`+"\n", "", 1)
	return s
}

func newContractBench(t *testing.T, next of, checks ofContracts, change func(*Config), devices ...string) *bench {
	t.Helper()
	return benchOf(t, children{next: next, checks: checks}, change, devices...)
}

// done returns the contracts that the n-th child was not to check.
func (b *bench) done(n int) []string { return b.asked(state.KindContract, n).Done }

// contractsOnly returns these children, and then always the last.
func contractsOnly(first ...script) ofContracts {
	return func(_ string, _ []string, n int) script { return first[min(n, len(first)-1)] }
}

// verdicts returns the verdicts on a device, as checking takes them.
func (b *bench) verdicts(device string) []string {
	b.t.Helper()
	contracts := stateOf(b.t, b.Snapshot(), device).Contracts
	if contracts == nil {
		return nil
	}
	var all []string
	for _, c := range contracts.Verdicts {
		text := string(c.Verdict)
		if c.Reason != "" {
			text += ":" + string(c.Reason)
		}
		all = append(all, c.Name, text)
	}
	return all
}

func outcomes(runs []*state.Run) []state.Outcome {
	var all []state.Outcome
	for _, r := range runs {
		all = append(all, r.Outcome)
	}
	return all
}

func TestContractsAtStartAndByInterval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newContractBench(t, always(scriptOK(7*time.Second)), contractsOnly(checked(3*time.Second, "x", "holds", "y", "violated")), nil, "a")
		if a := stateOf(t, b.after(7*time.Second+time.Second), "a"); a.Last == nil || a.Contracts != nil || !b.Snapshot().Ready {
			t.Errorf("state %+v during the first contract run", a)
		}
		b.after(2*time.Hour + time.Minute)
		h := time.Hour
		wantEqual(t, "contract runs", b.kids.startsOf(contractsOf("a")), []time.Duration{7 * time.Second, h + 7*time.Second, 2*h + 7*time.Second})
		starts := b.kids.startsOf("a")
		for i, start := range starts {
			if start != time.Duration(i)*time.Minute {
				t.Errorf("run %d of the probes started after %v", i, start)
			}
		}

		runs := b.sink.runs(contractsOf("a"))
		wantEqual(t, "outcomes", outcomes(runs), []state.Outcome{state.OutcomeOK, state.OutcomeOK, state.OutcomeOK})
		last := runs[2]
		if last.Kind != state.KindContract || len(last.Contracts) != 2 || !last.Contracts[0].CheckedAt.IsZero() || last.Error != "" {
			t.Errorf("the sink was handed %+v", last)
		}
		for _, r := range b.sink.runs("a") {
			if r.Kind != state.KindProbe {
				t.Errorf("a run of the probes has kind %q", r.Kind)
			}
		}
		a := stateOf(t, b.Snapshot(), "a")
		if a.Last.Kind != state.KindProbe || !a.LastSuccess.Equal(a.Last.Started) || a.Failures != 0 {
			t.Errorf("state %+v, last %+v", a, a.Last)
		}
		c := a.Contracts
		if c.Last.Kind != state.KindContract || c.Last.Contracts != nil || c.Last.Duration != 3*time.Second || !c.Last.Started.Equal(last.Started) {
			t.Errorf("last contract run %+v", c.Last)
		}
		if len(c.Verdicts) != 2 || c.Verdicts[1].Observed != "observed of y" || !c.Verdicts[1].CheckedAt.Equal(last.Started) {
			t.Errorf("verdicts %+v", c.Verdicts)
		}
	})
}

// TestContractsAndProbesFailApart verifies that failures of contract runs do not affect probe
// runs, nor the reverse.
func TestContractsAndProbesFailApart(t *testing.T) {
	t.Parallel()
	bad := script{output: `{"end":{"error":"no luck"}}` + "\n"}
	subtest(t, "contract run", func(t *testing.T) {
		b := newContractBench(t, always(scriptOK(0)), contractsOnly(bad), func(c *Config) { c.Contract.Interval = 10 * time.Second }, "a")
		a := stateOf(t, b.after(time.Hour), "a")
		if n := b.sink.count("a"); n != 61 {
			t.Errorf("%d runs of the probes", n)
		}
		if n := b.sink.count(contractsOf("a")); n != 361 {
			t.Errorf("%d contract runs", n)
		}
		if a.Failures != 0 || a.Last.Outcome != state.OutcomeOK || a.Contracts.Last.Error != "no luck" || a.Contracts.Verdicts == nil || len(a.Contracts.Verdicts) != 0 {
			t.Errorf("state %+v, contracts %+v", a, a.Contracts)
		}
	})
	subtest(t, "probes", func(t *testing.T) {
		b := newContractBench(t, always(scriptFail()), contractsOnly(checked(0, "x", "holds")), func(c *Config) { c.Contract.Interval = 10 * time.Second }, "a")
		a := stateOf(t, b.after(time.Hour), "a")
		if n := b.sink.count(contractsOf("a")); n != 361 {
			t.Errorf("%d contract runs", n)
		}
		if n := b.sink.count("a"); a.Failures != n || n > 15 || !a.LastSuccess.IsZero() || a.Last.Outcome != state.OutcomeFailed {
			t.Errorf("state %+v after %d runs", a, n)
		}
	})
}

// TestContractsGoesOn verifies that a contract on which the child hangs or crashes costs only
// its own verdict.
func TestContractsGoesOn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		first script
		want  string
		// observed are parts of the evidence.
		observed []string
		takes    time.Duration
	}{
		{"after a hang", hangs("y", "x", "violated"), "skipped:timeout", []string{"timed out after 20s", "ibv_get_cq_event"}, 20 * time.Second},
		{"after a crash", crashes("y", "x", "violated"), "skipped:crashed", []string{"ibv_get_cq_event", "SIGSEGV"}, time.Second},
		{
			"after garbage",
			script{output: checking("x", "violated") + `{"checking":"y"}` + "\nhello\n", takes: -1},
			"skipped:crashed",
			[]string{"no report", "hello"},
			0,
		},
		{"after a hang that proves it", presumes(hangs("y", "x", "violated"), false), "violated", []string{"the end of the process", "timed out after 20s"}, 20 * time.Second},
		{"after a crash that proves it", presumes(crashes("y", "x", "violated"), false), "violated", []string{"the end of the process", "SIGSEGV"}, time.Second},
		{"after a crash told by the runtime", presumes(ends(child.Exit{Status: 2}, "y", "x", "violated"), false), "violated", []string{"the end of the process", "exit status 2"}, time.Second},
		{"after somebody killed it", presumes(ends(child.Exit{Signal: syscall.SIGKILL}, "y", "x", "violated"), false), "skipped:crashed", []string{"killed by SIGKILL"}, time.Second},
		{"after it ended in no verb", presumes(inNoVerb(ends(child.Exit{Status: 2}, "y", "x", "violated")), false), "skipped:crashed", []string{"exit status 2"}, time.Second},
		{"after its time was up in no verb", presumes(inNoVerb(hangs("y", "x", "violated")), false), "skipped:timeout", []string{"timed out after 20s"}, 20 * time.Second},
		{"after it was proven", presumes(inNoVerb(ends(child.Exit{Signal: syscall.SIGKILL}, "y", "x", "violated")), true), "violated", []string{"killed by SIGKILL"}, time.Second},
	}
	for _, tt := range tests {
		subtest(t, tt.name, func(t *testing.T) {
			checks := func(_ string, _ []string, n int) script {
				switch n {
				case 0:
					return tt.first
				case 1:
					return checked(time.Second, "z", "holds")
				default:
					return checked(time.Second, "x", "violated", "y", "violated", "z", "holds")
				}
			}
			b := newContractBench(t, always(scriptOK(0)), checks, nil, "a")
			b.after(30 * time.Second)
			wantEqual(t, "contract runs", b.kids.startsOf(contractsOf("a")), []time.Duration{0, tt.takes})
			wantEqual(t, "told", [][]string{b.done(0), b.done(1)}, [][]string{nil, {"x", "y"}})
			wantEqual(t, "verdicts", b.verdicts("a"), []string{"x", "violated", "y", tt.want, "z", "holds"})
			contracts := stateOf(t, b.Snapshot(), "a").Contracts
			y := contracts.Verdicts[1]
			if y.Severity != state.SeverityWarning {
				t.Errorf("severity %q of a contract that was never checked", y.Severity)
			}
			for _, want := range tt.observed {
				if !strings.Contains(y.Observed, want) {
					t.Errorf("%q is not in what was observed: %q", want, y.Observed)
				}
			}
			runs := b.sink.runs(contractsOf("a"))
			wantEqual(t, "runs", len(runs), 2)
			if c := runs[0].Contracts; len(c) != 2 || c[1].Name != "y" || runs[0].InProgress != "y" {
				t.Errorf("the sink was handed %+v", runs[0])
			}
			if !y.CheckedAt.Equal(runs[0].Started) || !contracts.Verdicts[2].CheckedAt.Equal(runs[1].Started) || !contracts.Last.Started.Equal(runs[1].Started) {
				t.Errorf("verdicts %+v", contracts.Verdicts)
			}

			// The next contract run begins from the start, an hour after this one did.
			b.after(time.Hour)
			wantEqual(t, "third child", b.kids.startsOf(contractsOf("a"))[2], time.Hour)
			wantEqual(t, "told", len(b.done(2)), 0)
			wantEqual(t, "verdicts", b.verdicts("a"), []string{"x", "violated", "y", "violated", "z", "holds"})
		})
	}
}

// TestContractsMergesVerdicts verifies that a contract without a new verdict keeps its
// severity, and that published snapshots do not change.
func TestContractsMergesVerdicts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		checks := contractsOnly(
			checked(0, "x", "holds", "y", "holds"),
			hangs("y", "z", "holds", "x", "violated"),
			checked(0),
			script{output: `{"end":{"error":"cannot be opened"}}` + "\n"},
		)
		b := newContractBench(t, always(scriptOK(0)), checks, nil, "a")
		first := stateOf(t, b.after(time.Minute), "a").Contracts
		before, _ := json.Marshal(first)
		b.after(time.Hour)
		want := []string{"x", "violated", "y", "skipped:timeout", "z", "holds"}
		wantEqual(t, "verdicts", b.verdicts("a"), want)
		second := stateOf(t, b.Snapshot(), "a").Contracts
		wantEqual(t, "severity", second.Verdicts[1].Severity, state.SeverityCritical)
		if after, _ := json.Marshal(first); first == second || string(after) != string(before) {
			t.Errorf("what was published has changed from %s to %s", before, after)
		}

		b.after(time.Hour)
		third := stateOf(t, b.Snapshot(), "a").Contracts
		wantEqual(t, "verdicts", b.verdicts("a"), want)
		if third == second || third.Last.Error != "cannot be opened" || third.Last.Outcome != state.OutcomeFailed {
			t.Errorf("last contract run %+v", third.Last)
		}
	})
}

// TestContractsDoesNotGoOn verifies that a run that ends outside a contract has no further
// child.
func TestContractsDoesNotGoOn(t *testing.T) {
	t.Parallel()
	silent := scriptHang()
	silent.output = checking("x", "holds") + silent.output
	failed := script{output: checking("x", "holds") + `{"checking":"y"}` + "\n" + `{"end":{"error":"out of memory"}}` + "\n"}
	for name, first := range map[string]script{"hangs between contracts": silent, "hangs at first": scriptHang(), "fails in order": failed} {
		subtest(t, name, func(t *testing.T) {
			b := newContractBench(t, always(scriptOK(0)), contractsOnly(first), nil, "a")
			b.after(59 * time.Minute)
			wantEqual(t, "children", b.sink.count(contractsOf("a")), 1)
			if v := b.verdicts("a"); len(v) > 2 {
				t.Errorf("verdicts %q", v)
			}
		})
	}
}

func TestStuckInContracts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		child := hangs("y", "x", "holds")
		child.unkillable, child.release = true, make(chan struct{})
		b := newContractBench(t, always(scriptOK(time.Second)), contractsOnly(child, checked(0, "x", "holds", "y", "holds")), nil, "a")
		a := stateOf(t, b.after(10*time.Minute), "a")
		if a.Stuck == nil || a.Stuck.Verb != "ibv_get_cq_event" || a.Failures != 0 || a.Last.Outcome != state.OutcomeOK {
			t.Fatalf("state %+v", a)
		}
		wantEqual(t, "verdicts", b.verdicts("a"), []string{"x", "holds", "y", "skipped:timeout"})
		if text := a.Contracts.Verdicts[1].Observed; !strings.Contains(text, "cannot be killed") {
			t.Errorf("observed %q", text)
		}
		wantEqual(t, "runs of the probes", b.sink.count("a"), 1)
		wantEqual(t, "contract runs", b.sink.count(contractsOf("a")), 1)
		wantEqual(t, "warnings", b.logs("does not end"), 1)
		wantEqual(t, "sums", b.logs("checked for the first time"), 1)

		close(child.release)
		a = stateOf(t, b.after(2*time.Second), "a")
		if a.Stuck != nil {
			t.Errorf("state %+v", a)
		}
		wantEqual(t, "runs of the probes", b.sink.count("a"), 2)
		wantEqual(t, "contract runs", b.sink.count(contractsOf("a")), 1)
		b.after(time.Hour)
		wantEqual(t, "start of the next contract run", b.kids.startsOf(contractsOf("a"))[1:], []time.Duration{time.Hour + time.Second})
		wantEqual(t, "verdicts", b.verdicts("a"), []string{"x", "holds", "y", "holds"})
	})
}

func TestVanishedInContracts(t *testing.T) {
	t.Parallel()
	for _, stuck := range []bool{false, true} {
		subtest(t, fmt.Sprintf("stuck %v", stuck), func(t *testing.T) {
			child := hangs("y", "x", "holds")
			if stuck {
				child.unkillable, child.release = true, make(chan struct{})
			}
			checks := contractsOnly(checked(0, "x", "holds", "y", "violated"), child, checked(0, "z", "holds"))
			b := newContractBench(t, always(scriptOK(0)), checks, nil, "a")
			b.after(time.Hour + 2*time.Second)
			wantEqual(t, "contract runs", len(b.kids.startsOf(contractsOf("a"))), 2)
			b.host(nil)
			snap := b.after(10 * time.Second)
			wantEqual(t, "observed contract runs", b.sink.count(contractsOf("a")), 1)
			if stuck {
				if a := stateOf(t, snap, "a"); a.Stuck == nil || a.Contracts != nil {
					t.Errorf("state %+v", a)
				}
				close(child.release)
				snap = b.after(0)
			}
			wantEqual(t, "devices", names(snap), []string(nil))
			told := b.sink.told()
			wantEqual(t, "last word", told[len(told)-1], "a forgotten")

			b.host(nil, "a")
			b.after(10 * time.Second)
			wantEqual(t, "verdicts", b.verdicts("a"), []string{"z", "holds"})
			wantEqual(t, "told", b.sink.told()[len(told):], []string{"a ok", contractsOf("a") + " ok"})
			wantEqual(t, "first contract runs", b.logs("checked for the first time"), 2)
		})
	}
}

func TestProbesBetweenChildrenOfContracts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		checks := func(_ string, done []string, _ int) script { return hangs(fmt.Sprintf("c%d", len(done))) }
		b := newContractBench(t, always(scriptOK(time.Second)), checks, func(c *Config) { c.Interval = 15 * time.Second }, "a")
		b.after(5 * time.Minute)
		var want []string
		for range 5 {
			want = append(want, "a", contractsOf("a"))
		}
		wantEqual(t, "order", b.kids.order[:10], want)
	})
}

// TestHungDevicesStarveNoContracts verifies that, however many devices hang, a device whose
// contract run hung once completes it, its probes do not wait for that, and the hung ones each get slots.
func TestHungDevicesStarveNoContracts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		interval, timeout, backoff, within time.Duration
	}{
		{time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Minute},
		{time.Minute, 30 * time.Second, 2 * time.Minute, 3 * time.Hour},
		{10 * time.Minute, time.Minute, 10 * time.Minute, 6 * time.Hour},
	} {
		subtest(t, tt.interval.String(), func(t *testing.T) {
			hung := []string{"h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9"}
			probe := func(device string, _ int) script {
				if device == "shaky" {
					return scriptOK(100 * time.Millisecond)
				}
				return scriptHang()
			}
			checks := func(device string, done []string, _ int) script {
				if device == "shaky" && len(done) > 0 {
					return checked(time.Second, "y", "holds")
				}
				return hangs(fmt.Sprintf("c%d", len(done)))
			}
			b := newContractBench(t, probe, checks, func(c *Config) {
				c.Concurrency = 2
				c.Interval, c.Timeout, c.Backoff = tt.interval, tt.timeout, tt.backoff
				c.Contract = Schedule{Interval: 12 * time.Hour, Timeout: tt.timeout}
			}, append(hung, "shaky")...)
			b.after(tt.within)
			wantEqual(t, "the contract run", outcomes(b.sink.runs(contractsOf("shaky"))), []state.Outcome{state.OutcomeTimeout, state.OutcomeOK})
			starts := b.kids.startsOf("shaky")
			for i := 2; i < len(starts); i++ {
				// A probe waits for its own contract run, and for those that hang for the first time.
				if d := starts[i] - starts[i-1]; d > tt.interval+tt.timeout+time.Second {
					t.Errorf("run %d on the shaky device started %v after the one before", i, d)
				}
			}
			for _, d := range hung {
				if n := b.sink.count(contractsOf(d)); n < 5 {
					t.Errorf("%d children of the contract run of %s", n, d)
				}
			}
		})
	}
}

// TestStuckDeviceLeavesTheQueue verifies that a device with a stuck child gives up its ticket.
func TestStuckDeviceLeavesTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		// Its first contract run hangs, and while the next child waits in the queue, a probe
		// run cannot be killed.
		stuck := scriptUnkillable()
		probe := func(device string, n int) script {
			switch {
			case device == "hung":
				return scriptHang()
			case n > 20:
				return stuck
			default:
				return scriptOK(100 * time.Millisecond)
			}
		}
		checks := func(device string, done []string, _ int) script {
			return hangs(fmt.Sprintf("c%d", len(done)))
		}
		b := newContractBench(t, probe, checks, func(c *Config) {
			c.Interval, c.Timeout, c.Backoff = time.Second, time.Minute, time.Minute
		}, "hung", "stuck")
		b.after(10 * time.Minute)
		before := b.sink.count("hung")
		b.after(20 * time.Minute)
		if n := b.sink.count("hung") - before; n < 5 {
			t.Errorf("%d runs on the other device in 20 minutes", n)
		}
		close(stuck.release)
	})
}

func TestContractsLog(t *testing.T) {
	rec := golden.Record(t)
	bubble(t, func(t *testing.T) {
		checks := contractsOnly(
			checked(0, "w", "known violated", "x", "violated", "y", "holds", "z", "skipped:port_down"),
			checked(0, "w", "known violated", "x", "violated", "y", "holds", "z", "skipped:port_down"),
			checked(0, "x", "holds", "y", "violated", "z", "holds"),
			hangs("y", "x", "holds"), checked(0, "z", "holds"),
			hangs("y", "x", "holds"), checked(0, "z", "holds"),
			checked(0, "x", "holds", "y", "holds", "z", "holds"),
			scriptFail(),
			checked(0, "x", "holds", "y", "holds", "z", "holds"),
			checked(0, "x", "known violated", "y", "holds", "z", "known holds"),
			checked(0, "x", "violated", "y", "holds", "z", "known holds"),
		)
		b := newContractBench(t, always(scriptOK(0)), checks, func(c *Config) { c.Interval = 24 * time.Hour }, "a")
		b.after(time.Minute)
		said := 0
		for hour := range 11 {
			var lines []string
			for line := range strings.Lines(b.log.String()[said:]) {
				_, line, _ = strings.Cut(strings.TrimSpace(line), "level=")
				if !strings.Contains(line, "Device found") && !strings.Contains(line, "Device probed") {
					lines = append(lines, line)
				}
			}
			rec.Add(fmt.Sprint("hour ", hour), lines...)
			said = len(b.log.String())
			b.after(time.Hour)
		}
	})
}

// planned returns the line of a child that will check these contracts.
func planned(severity state.Severity, names ...string) string {
	var plan []state.Planned
	for _, name := range names {
		plan = append(plan, state.Planned{Name: name, Severity: severity})
	}
	return lines(wire.Line{Planned: plan})
}

// TestContractsWithoutCompletions verifies that a child that hangs while it tries completions
// costs only the contracts that need them.
func TestContractsWithoutCompletions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		checks := func(_ string, _ []string, n int) script {
			if n == 0 {
				return script{output: planned(state.SeverityInfo, "x", "y") + `{"begin":"ibv_post_send"}` + "\n", takes: -1}
			}
			return checked(0, "x", "holds", "y", "skipped:prerequisite_failed")
		}
		b := newContractBench(t, always(scriptOK(0)), checks, nil, "a")
		b.after(30 * time.Second)
		wantEqual(t, "without", []bool{b.asked(state.KindContract, 0).WithoutCompletions, b.asked(state.KindContract, 1).WithoutCompletions}, []bool{false, true})
		wantEqual(t, "verdicts", b.verdicts("a"), []string{"x", "holds", "y", "skipped:prerequisite_failed"})

		// The next contract run tries again.
		b.after(time.Hour)
		wantEqual(t, "without", b.asked(state.KindContract, 2).WithoutCompletions, false)
	})
}

// TestContractsThatIsBrokenOff verifies that contracts that an abandoned run did not reach are
// skipped, unless a verdict exists, and that a complete run drops contracts that are no longer
// checked.
func TestContractsThatIsBrokenOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		checks := func(_ string, _ []string, n int) script {
			switch {
			case n <= maxContinuations:
				s := crashes(fmt.Sprintf("c%d", n))
				s.output = planned(state.SeverityInfo, "c0", "c1", "c2", "c3", "c4", "c5", "c6") + s.output
				return s
			case n == maxContinuations+1:
				return checked(0, "c5", "holds")
			default:
				return script{output: planned(state.SeverityInfo, "c5", "c6") + `{"begin":"ibv_post_send"}` + "\n", takes: time.Second, exit: child.Exit{Signal: syscall.SIGKILL}}
			}
		}
		b := newContractBench(t, always(scriptOK(0)), checks, nil, "a")
		b.after(time.Minute)
		want := []string{"c5", "skipped:crashed", "c6", "skipped:crashed"}
		for i := range maxContinuations + 1 {
			want = slices.Insert(want, 2*i, fmt.Sprintf("c%d", i), "skipped:crashed")
		}
		wantEqual(t, "warnings", b.logs("given up"), 1)
		wantEqual(t, "verdicts", b.verdicts("a"), want)
		for _, c := range stateOf(t, b.Snapshot(), "a").Contracts.Verdicts {
			wantEqual(t, "severity of "+c.Name, c.Severity, state.SeverityInfo)
		}
		b.after(time.Hour)
		wantEqual(t, "verdicts", b.verdicts("a"), []string{"c5", "holds"})
		b.after(time.Hour)
		wantEqual(t, "verdicts", b.verdicts("a"), []string{"c5", "holds", "c6", "skipped:crashed"})
	})
}

// TestContractsKeepsUndestroyed verifies that objects that an earlier child could not destroy
// stay until the next contract run.
func TestContractsKeepsUndestroyed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		first := crashes("y", "x", "holds")
		first.output = `{"undestroyed":{"type":"cq","errno":"EBUSY","attempts":5}}` + "\n" + first.output
		checks := func(_ string, _ []string, n int) script {
			if n == 0 {
				return first
			}
			return checked(time.Second, "z", "holds")
		}
		b := newContractBench(t, always(scriptOK(0)), checks, func(c *Config) { c.Contract.Interval = 10 * time.Minute }, "a")
		got := stateOf(t, b.after(5*time.Minute), "a").Contracts.Last
		if got.Outcome != state.OutcomeOK || len(got.Undestroyed) != 1 || got.Undestroyed[0].Type != "cq" {
			t.Errorf("after both children: %+v", got)
		}
		if got := stateOf(t, b.after(10*time.Minute), "a").Contracts.Last; len(got.Undestroyed) != 0 {
			t.Errorf("after the next contract run: %+v", got)
		}
	})
}

// TestVerdictsAreBounded verifies that no more verdicts are kept, whatever names children invent.
func TestVerdictsAreBounded(t *testing.T) {
	t.Parallel()
	var all []state.Contract
	for i := range 2 * maxVerdicts {
		all = merged(all, state.Contract{Name: fmt.Sprint(i)}, state.Contract{Name: "0", Observed: "latest"})
	}
	if len(all) != maxVerdicts || all[0].Observed != "latest" {
		t.Errorf("%d verdicts are kept, the first %+v", len(all), all[0])
	}
}
