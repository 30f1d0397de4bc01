package supervisor

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// factsOf are facts about a device with some firmware.
func factsOf(firmware string) *state.Facts {
	return &state.Facts{Identity: state.Identity{Firmware: firmware}}
}

// told says what a run is told: facts, and turn.
func told(p wire.Request) string {
	facts, turn := "nothing", "all"
	if p.Facts != nil {
		facts = p.Facts.Identity.Firmware
	}
	if p.Turn != nil {
		turn = fmt.Sprint(*p.Turn)
	}
	return facts + " " + turn
}

// TestRounds: a turn comes again until it went well, and on a device that has changed
// runs do everything until that did.
func TestRounds(t *testing.T) {
	t.Parallel()
	var r rounds
	for i, step := range []struct {
		told    string
		outcome state.Outcome
		turn    bool // that the run took its turn
		facts   *state.Facts
		changes int
	}{
		// A child that knows nothing does everything, whatever its turn.
		{"nothing 0", state.OutcomeCrashed, false, nil, 0},
		{"nothing 0", state.OutcomeOK, false, factsOf("1"), 0},
		{"1 0", state.OutcomeOK, true, nil, 0},
		{"1 1", state.OutcomeFailed, true, nil, 0},
		{"1 1", state.OutcomeTimeout, false, nil, 0},
		{"1 1", state.OutcomeCrashed, true, nil, 0},
		{"1 1", state.OutcomeOK, true, factsOf("1"), 0},
		{"1 2", state.OutcomeFailed, false, factsOf("2"), 1},
		{"2 all", state.OutcomeTimeout, false, nil, 0},
		{"2 all", state.OutcomeOK, false, nil, 0},
		{"2 0", state.OutcomeOK, true, nil, 0},
		{"2 1", state.OutcomeOK, true, nil, 0},
	} {
		if got := told(r.request()); got != step.told {
			t.Errorf("run %d is told %q, want %q", i, got, step.told)
		}
		run := &state.Run{Outcome: step.outcome, Facts: step.facts}
		if step.turn {
			run.Turn = &state.Turn{Object: "cq"}
		}
		if _, changes := r.take(run); len(changes) != step.changes {
			t.Errorf("run %d: changes %q", i, changes)
		}
	}
}

// all lists what probes found, but for what is found each time.
func all(run *state.Run) string {
	var list []string
	for _, p := range run.Probes {
		for _, c := range p.CQs {
			list = append(list, fmt.Sprintf("cq %s %d", c.Profile, c.Actual))
		}
		for _, s := range p.SRQs {
			list = append(list, fmt.Sprintf("srq %s %d", s.Profile, s.Actual.WorkRequests))
		}
		for _, q := range p.QPs {
			list = append(list, fmt.Sprintf("%s %s %d", q.Type, q.Profile, q.Actual.InlineBytes))
		}
		for _, m := range p.Registrations {
			list = append(list, fmt.Sprintf("mr %s %d ns", m.Memory, m.Duration))
		}
		for _, m := range p.Memory {
			list = append(list, fmt.Sprintf("%s %s %d B", m.Object, m.Profile, m.Virtual))
		}
		for _, c := range p.Clamps {
			list = append(list, fmt.Sprintf("%s %s cut to %d", c.Subject, c.Profile, c.Used))
		}
		for _, k := range p.Known {
			list = append(list, fmt.Sprintf("known %s %s", k.Subject, k.Message))
		}
		for _, w := range p.Ways {
			list = append(list, fmt.Sprintf("way %s %d %s", w.Path, w.Port, w.By))
		}
		for _, l := range p.Latencies {
			list = append(list, fmt.Sprintf("%s %s %d/%d %d", l.Path, l.Mode, l.Port, l.Vector, l.P50))
		}
		for _, s := range p.Skips {
			list = append(list, fmt.Sprintf("no %s", s.Subject))
		}
	}
	return strings.Join(list, ", ")
}

// TestCarried: what did not have its turn is still known from the turn that it had, and
// what had it is as it was found now, gone if it is not there any more.
func TestCarried(t *testing.T) {
	t.Parallel()
	sizes := func(value int64, profiles ...string) (list []state.CQSize) {
		for _, p := range profiles {
			list = append(list, state.CQSize{Profile: p, Actual: value})
		}
		return list
	}
	latency := func(path state.LatencyPath, mode state.LatencyMode, port, vector int, p50 time.Duration) state.Latency {
		return state.Latency{Path: path, Mode: mode, Port: port, Vector: vector, Count: 1, P50: p50, Samples: []time.Duration{p50}}
	}
	const (
		loopback, flush = state.PathLoopback, state.PathFlush
		anyEvent, poll  = state.ModeAny, state.ModePoll
	)
	for _, tc := range []struct {
		name        string
		turn        *state.Turn
		before, now state.Probe
		want        string
	}{
		{
			"a size that had its turn and failed", &state.Turn{Object: "cq"},
			state.Probe{Name: "cq", CQs: sizes(1, "small", "medium", "large")},
			state.Probe{Name: "cq", CQs: sizes(2, "small", "large")},
			"cq small 2, cq large 2",
		},
		{
			"sizes of which none had its turn", &state.Turn{Object: "srq"},
			state.Probe{Name: "cq", CQs: sizes(1, "small", "medium", "large")},
			state.Probe{Name: "cq", CQs: sizes(2, "small")},
			"cq small 2, cq medium 1, cq large 1",
		},
		{
			"everything had its turn", nil,
			state.Probe{Name: "cq", CQs: sizes(1, "small", "medium", "large")},
			state.Probe{Name: "cq", CQs: sizes(2, "medium")},
			"cq medium 2",
		},
		{
			"SRQs", &state.Turn{Object: "qp_rc"},
			state.Probe{
				Name: "srq", SRQs: []state.SRQSize{{Profile: "small"}, {Profile: "large", Actual: state.SRQAttr{WorkRequests: 1}}},
				Skips: []state.Skip{{Subject: "small"}, {Subject: "medium"}},
			},
			state.Probe{Name: "srq"},
			"srq large 1, no medium",
		},
		{
			"memory that had no turn", &state.Turn{Object: "cq"},
			state.Probe{Name: "mr", Registrations: []state.Registration{{Memory: state.MemoryPage, Duration: 1}, {Memory: state.MemoryMany, Duration: 2}}},
			state.Probe{Name: "mr", Registrations: []state.Registration{{Memory: state.MemoryPage, Duration: 3}}},
			"mr 4KiB 3 ns, mr 2MiB 2 ns",
		},
		{
			"a huge page, which never has its turn", &state.Turn{Object: "mr"},
			state.Probe{
				Name: "mr", Skips: []state.Skip{{Subject: "huge_page", Reason: state.SkipNotPermitted}},
				Registrations: []state.Registration{{Memory: state.MemoryPage, Duration: 1}, {Memory: state.MemoryHuge, Duration: 2}},
			},
			state.Probe{Name: "mr", Registrations: []state.Registration{{Memory: state.MemoryPage, Duration: 3}}},
			"mr 4KiB 3 ns, mr huge_page 2 ns, no huge_page",
		},
		{
			"memory that had its turn", &state.Turn{Object: "mr"},
			state.Probe{Name: "mr", Registrations: []state.Registration{{Memory: state.MemoryPage, Duration: 1}, {Memory: state.MemoryMany, Duration: 2}}},
			state.Probe{Name: "mr", Registrations: []state.Registration{{Memory: state.MemoryPage, Duration: 3}}},
			"mr 4KiB 3 ns",
		},
		{
			"one type of two", &state.Turn{Object: "qp_rc"},
			state.Probe{
				Name: "qp", QPs: []state.QPSize{{Type: "rc", Profile: "small"}, {Type: "rc", Profile: "large"}, {Type: "uc", Profile: "small"}, {Type: "uc", Profile: "large"}},
				Memory: []state.Memory{{Object: "qp_rc", Profile: "large"}, {Object: "qp_uc", Profile: "medium"}, {Object: "qp_uc", Profile: "large"}},
				Clamps: []state.Clamp{{Subject: "qp_rc", Profile: "medium"}, {Subject: "qp_uc", Profile: "medium"}, {Subject: "qp_uc", Profile: "small"}},
				Known:  []state.KnownShortfall{{Subject: "rc large", Message: "a"}, {Subject: "uc large", Message: "b"}, {Subject: "uc small", Message: "c"}},
			},
			state.Probe{
				Name: "qp", QPs: []state.QPSize{{Type: "rc", Profile: "small", Actual: state.QPCap{InlineBytes: 2}}, {Type: "rc", Profile: "medium"}, {Type: "uc", Profile: "small"}},
				Memory: []state.Memory{{Object: "qp_rc", Profile: "large", Virtual: 2}},
			},
			"rc small 2, uc small 0, uc large 0, rc medium 0, qp_rc large 2 B, qp_uc medium 0 B, qp_uc large 0 B, qp_uc medium cut to 0, known uc large b",
		},
		{
			"one vector and one port of two", &state.Turn{Object: "cq", Port: 1, Vector: 3},
			state.Probe{
				Name: "notification",
				Ways: []state.Way{{Port: 1, Path: loopback, By: "old"}, {Port: 1, Path: flush, By: "old"}, {Port: 2, Path: loopback, By: "old"}},
				Latencies: []state.Latency{
					latency(loopback, anyEvent, 1, 0, 1), latency(loopback, anyEvent, 1, 3, 1), latency(loopback, poll, 1, 0, 1),
					latency(flush, anyEvent, 1, 0, 1), latency(flush, poll, 1, 0, 1), latency(loopback, anyEvent, 2, 0, 1), latency(loopback, poll, 2, 0, 1),
				},
				Skips: []state.Skip{{Subject: "loopback solicited port 1"}, {Subject: "loopback solicited port 2"}, {Subject: "flush solicited"}, {Subject: "loopback port 3"}},
			},
			state.Probe{
				Name:      "notification",
				Ways:      []state.Way{{Port: 1, Path: loopback, By: "new"}},
				Latencies: []state.Latency{latency(loopback, anyEvent, 1, 3, 2), latency(flush, poll, 1, 3, 2)},
			},
			"way loopback 1 new, way loopback 2 old, loopback any 1/0 1, loopback any 1/3 2, loopback any 2/0 1, loopback poll 2/0 1, flush poll 1/3 2, no loopback solicited port 2",
		},
		{
			"a port that no longer reaches itself", &state.Turn{Object: "cq", Vector: 1},
			state.Probe{
				Name: "notification", Ways: []state.Way{{Port: 1, Path: loopback, By: "old"}},
				Latencies: []state.Latency{latency(loopback, anyEvent, 1, 0, 1), latency(flush, anyEvent, 1, 0, 1), latency(flush, poll, 1, 0, 1)},
				Skips:     []state.Skip{{Subject: "loopback solicited port 1"}},
			},
			state.Probe{
				Name: "notification", Latencies: []state.Latency{latency(flush, anyEvent, 1, 1, 2), latency(flush, poll, 1, 1, 2)},
				Skips: []state.Skip{{Subject: "loopback port 1"}},
			},
			"flush any 1/0 1, flush any 1/1 2, flush poll 1/1 2, no loopback port 1",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var r rounds
			first := &state.Run{Outcome: state.OutcomeOK, Facts: factsOf("1"), Probes: []state.Probe{tc.before}}
			r.take(first)
			was := all(first)
			// One that was killed before it came so far leaves what is known.
			r.take(&state.Run{Outcome: state.OutcomeTimeout, Probes: []state.Probe{{Name: tc.now.Name}}})
			now := &state.Run{Outcome: state.OutcomeOK, Turn: tc.turn, Probes: []state.Probe{tc.now}}
			kept, _ := r.take(now)
			if got := all(kept); got != tc.want {
				t.Errorf("kept:\n%s, want\n%s", got, tc.want)
			}
			if all(first) != was || len(now.Probes[0].CQs) != len(tc.now.CQs) || len(now.Probes[0].Latencies) != len(tc.now.Latencies) {
				t.Error("a run has changed")
			}
			// Of another device nothing is kept.
			kept, _ = r.take(&state.Run{Outcome: state.OutcomeOK, Turn: tc.turn, Facts: factsOf("2"), Probes: []state.Probe{{Name: tc.now.Name}}})
			if got := all(kept); got != "" {
				t.Errorf("kept of another device: %s", got)
			}
		})
	}
}

// A child that is out of its mind cannot make the exporter keep any number of things.
func TestCarriedIsBounded(t *testing.T) {
	t.Parallel()
	var r rounds
	for i := range 10 {
		p := state.Probe{Name: "notification"}
		for vector := range 2000 {
			p.Latencies = append(p.Latencies, state.Latency{Path: state.PathLoopback, Mode: state.ModeAny, Port: 1, Vector: 2000*i + vector})
		}
		kept, _ := r.take(&state.Run{Outcome: state.OutcomeOK, Turn: &state.Turn{Port: 1, Vector: -1}, Probes: []state.Probe{p}})
		if n := len(kept.Probes[0].Latencies); n < 2000 || n > maxCarried {
			t.Errorf("%d measurements are kept", n)
		}
	}
}

// knowing is a child that tells of a device with some firmware, and takes its turn.
func knowing(t *testing.T, firmware string, turn bool) script {
	t.Helper()
	var b strings.Builder
	w := wire.NewWriter(&b)
	_ = w.Device(state.Device{CompletionVectors: 1})
	if firmware != "" {
		_ = w.Facts(*factsOf(firmware))
	}
	if turn {
		_ = w.Turn(state.Turn{Object: "cq", Port: 1})
	}
	_ = w.Probe(state.Probe{Name: "cq", Status: state.StatusOK})
	if err := w.End(wire.End{}); err != nil {
		t.Fatal(err)
	}
	return script{output: b.String()}
}

// TestContractsOnChange: when the device or its software has become another, the contracts
// are judged anew at once, and that is logged.
func TestContractsOnChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the tasks
		var tasks []string
		next := func(_ string, n int) script {
			switch n {
			case 0:
				return knowing(t, "1", false)
			case 5:
				return knowing(t, "2", false)
			default:
				return knowing(t, "", true)
			}
		}
		b := newContractBench(t, next, alwaysJudge(judged(time.Second, "notify_any", "holds")), func(c *Config) {
			c.Contract.Interval = DefaultConfig().Contract.Interval
			command := c.Command
			c.Command = func(kind state.Kind, device string, p wire.Request) Command {
				if kind == state.KindProbe {
					mu.Lock()
					defer mu.Unlock()
					tasks = append(tasks, told(p))
				}
				return command(kind, device, p)
			}
		}, "a")
		b.start()
		b.after(10*time.Minute + 30*time.Second)
		wantEqual(t, "contract runs", fmt.Sprint(b.kids.startsOf(judgingOf("a"))), "[0s 5m0s]")
		mu.Lock()
		all := strings.Join(tasks, ", ")
		mu.Unlock()
		wantEqual(t, "what the runs were told", all, "nothing 0, 1 0, 1 1, 1 2, 1 3, 1 4, 2 0, 2 1, 2 2, 2 3, 2 4")
		wantEqual(t, "lines of the log", b.logs("changed; everything about it is probed anew"), 1)
		wantEqual(t, "changes in the log", b.logs("firmware 2, before 1"), 1)
		b.after(24 * time.Hour)
		wantEqual(t, "contract runs a day later", len(b.kids.startsOf(judgingOf("a"))), 3)
		b.end()
	})
}
