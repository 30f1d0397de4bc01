package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
)

// once runs everything once. It returns how long that took and the error.
func (b *bench) once(ctx context.Context) (time.Duration, error) {
	b.t.Helper()
	began := time.Now()
	err := b.RunOnce(ctx)
	took := time.Since(began)
	synctest.Wait()
	return took, err
}

func onceOK(takes time.Duration) children {
	return children{
		next: always(scriptOK(takes)), checks: contractsOnly(checked(takes, "x", "holds")),
		inventory: always(inventorying(takes, state.Inventory{Index: 1})),
	}
}

func TestOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := benchOf(t, onceOK(time.Second), nil, "b", "a")
		took, err := b.once(t.Context())
		if err != nil || took != 3*time.Second {
			t.Errorf("it took %v and ended with %v", took, err)
		}
		b.kids.check(t)
		for _, device := range []string{"a", "b"} {
			wantEqual(t, "probes", b.kids.startsOf(device), []time.Duration{0})
			wantEqual(t, "contract runs", b.kids.startsOf(contractsOf(device)), []time.Duration{time.Second})
			wantEqual(t, "inventory", b.kids.startsOf(inventoryOf(device)), []time.Duration{2 * time.Second})
			dev := stateOf(t, b.Snapshot(), device)
			if !dev.Present || dev.Last == nil || dev.Contracts == nil || dev.Resources == nil || dev.Resources.Inventory == nil {
				t.Errorf("state of %s: %+v", device, dev)
			}
			wantEqual(t, "verdicts", b.verdicts(device), []string{"x", "holds"})
			wantEqual(t, "runs that the sink was handed", len(b.sink.runs(device))+len(b.sink.runs(contractsOf(device)))+len(b.sink.runs(inventoryOf(device))), 3)
		}
		wantEqual(t, "devices", names(b.Snapshot()), []string{"a", "b"})
		if !b.Snapshot().Ready {
			t.Error("it is not ready")
		}
		if err := b.RunOnce(t.Context()); !errors.Is(err, ErrStarted) {
			t.Errorf("a second RunOnce: %v", err)
		}
		if err := b.Run(t.Context()); !errors.Is(err, ErrStarted) {
			t.Errorf("Run afterwards: %v", err)
		}
	})
}

// TestOnceGoesOn verifies that the inventory comes after all children of the contract run.
func TestOnceGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		checks := func(_ string, _ []string, n int) script {
			return [...]script{
				opening(hangs("y", "x", "holds"), 12),
				opening(crashes("z"), 13),
				opening(checked(time.Second, "w", "violated"), 14),
			}[n]
		}
		inventory := always(inventorying(0, state.Inventory{Index: 1, PIDsVisible: true, Leftover: []state.Leftover{
			{Context: state.Context{Index: 1, ID: 12}, Type: "qp", Objects: 3},
		}}))
		b := benchOf(t, children{next: always(opening(scriptOK(0), 11)), checks: checks, inventory: inventory}, nil, "a")
		if _, err := b.once(t.Context()); err != nil {
			t.Error(err)
		}
		b.kids.check(t)
		wantEqual(t, "verdicts", b.verdicts("a"), []string{"x", "holds", "y", "skipped:timeout", "z", "skipped:crashed", "w", "violated"})
		wantEqual(t, "what was left out at last", b.done(2), []string{"x", "y", "z"})
		wantEqual(t, "looked for", b.lookedFor(0), []uint32{11, 12, 13, 14})
		left := stateOf(t, b.Snapshot(), "a").Resources.Leaked
		if len(left) != 1 || left[0].Type != "qp" || left[0].Objects != 3 {
			t.Errorf("left is %+v", left)
		}
	})
}

// TestOnceStuck verifies that a stuck child is in the snapshot and not waited for.
func TestOnceStuck(t *testing.T) {
	t.Parallel()
	ok := onceOK(time.Second)
	for _, c := range []struct {
		name                    string
		stuck                   func(b *bench, s script)
		contractRuns, inventory int
		took                    time.Duration
		kind                    state.Kind
	}{
		// 10 or 20 seconds until it is killed, 2.5 seconds of grace, and what else is done.
		{"probes", func(b *bench, s script) { b.kids.next = onlyOn("bad", s, ok.next) }, 0, 1, 13500 * time.Millisecond, state.KindProbe},
		{"contracts", func(b *bench, s script) {
			b.kids.checks = func(device string, checked []string, n int) script {
				if device == "bad" {
					return s
				}
				return ok.checks(device, checked, n)
			}
		}, 1, 1, 24500 * time.Millisecond, state.KindProbe},
		{"inventory", func(b *bench, s script) { b.kids.inventory = onlyOn("bad", s, ok.inventory) }, 1, 1, 14500 * time.Millisecond, state.KindInventory},
	} {
		subtest(t, c.name, func(t *testing.T) {
			b := benchOf(t, ok, nil, "bad", "good")
			s := scriptUnkillable()
			c.stuck(b, s)
			took, err := b.once(t.Context())
			if err != nil || took != c.took {
				t.Errorf("it took %v and ended with %v, want %v", took, err, c.took)
			}
			wantEqual(t, "contract runs", len(b.kids.startsOf(contractsOf("bad"))), c.contractRuns)
			wantEqual(t, "inventory", len(b.kids.startsOf(inventoryOf("bad"))), c.inventory)
			dev := stateOf(t, b.Snapshot(), "bad")
			stuck := dev.Stuck
			if c.kind == state.KindInventory {
				stuck = dev.Resources.Stuck
			}
			if stuck == nil || stuck.Verb != "ibv_destroy_cq" {
				t.Errorf("stuck is %+v", stuck)
			}
			goodState := stateOf(t, b.Snapshot(), "good")
			if goodState.Stuck != nil || goodState.Contracts == nil || goodState.Resources == nil || goodState.Resources.Inventory == nil {
				t.Errorf("the other device: %+v", goodState)
			}
			close(s.release)
			synctest.Wait()
			b.kids.check(t)
		})
	}
}

// TestOnceSlowToEnd verifies that a child that exits before the end is not shown as stuck.
func TestOnceSlowToEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, c := scriptUnkillable(), onceOK(time.Second)
		c.next = always(s)
		inventory := c.inventory
		c.inventory = func(device string, n int) script {
			// By now the probes of the device have been given up.
			close(s.release)
			return inventory(device, n)
		}
		b := benchOf(t, c, nil, "bad")
		if _, err := b.once(t.Context()); err != nil {
			t.Error(err)
		}
		dev := stateOf(t, b.Snapshot(), "bad")
		if dev.Stuck != nil || dev.Last == nil || dev.Last.Outcome != state.OutcomeTimeout {
			t.Errorf("stuck is %+v, the last run %+v", dev.Stuck, dev.Last)
		}
		b.kids.check(t)
	})
}

func onlyOn(device string, s script, others func(string, int) script) func(string, int) script {
	return func(d string, n int) script {
		if d == device {
			return s
		}
		return others(d, n)
	}
}

func TestOnceInterrupted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		after time.Duration
		order []string
		told  []string
	}{
		{"in the probes", 5 * time.Second, []string{"a"}, nil},
		{"in the contracts", 15 * time.Second, []string{"a", contractsOf("a")}, []string{"a ok"}},
		{"in the inventory", 25 * time.Second, []string{"a", contractsOf("a"), inventoryOf("a")}, []string{"a ok", contractsOf("a") + " ok"}},
	} {
		subtest(t, c.name, func(t *testing.T) {
			b := benchOf(t, onceOK(9*time.Second), nil, "a")
			ctx, cancel := context.WithTimeout(t.Context(), c.after)
			defer cancel()
			took, err := b.once(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || took != c.after {
				t.Errorf("it took %v and ended with %v", took, err)
			}
			b.kids.check(t)
			wantEqual(t, "children", b.kids.order, c.order)
			wantEqual(t, "what the sink was told", b.sink.told(), c.told)
		})
	}
}

// planning makes a child report first which contracts it will check.
func planning(s script, names ...string) script {
	s.output = planned(state.SeverityCritical, names...) + s.output
	return s
}

// TestOnceWithin verifies that it completes in time, keeps the results until then, and reports
// what is missing.
func TestOnceWithin(t *testing.T) {
	t.Parallel()
	const ever = time.Hour
	all := []state.Kind{state.KindProbe, state.KindContract, state.KindInventory}
	unending := func(s script) script {
		s.output, s.takes = strings.TrimSuffix(s.output, `{"end":{}}`+"\n"), ever
		return s
	}
	for _, c := range []struct {
		name     string
		within   time.Duration
		change   func(b *bench)
		probes   state.Outcome // Empty if they did not complete.
		verdicts []string
		missing  []state.Kind
	}{
		{"in time", 30 * time.Second, func(*bench) {}, state.OutcomeOK, []string{"x", "holds"}, nil},
		{"the probes", 8 * time.Second, func(b *bench) { b.kids.next = always(scriptOK(ever)) }, "", nil, all[:2]},
		{"probes that hang", 30 * time.Second, func(b *bench) { b.kids.next = always(scriptHang()) }, state.OutcomeTimeout, []string{"x", "holds"}, nil},
		{"contracts that are not done", 20 * time.Second, func(b *bench) {
			b.kids.checks = contractsOnly(planning(unending(checked(0, "x", "violated")), "x", "y"))
		}, state.OutcomeOK, []string{"x", "violated", "y", "skipped:budget"}, all[1:2]},
		{"contracts that hang", 20 * time.Second, func(b *bench) {
			b.kids.checks = contractsOnly(planning(hangs("y", "x", "holds"), "x", "y", "z"))
		}, state.OutcomeOK, []string{"x", "holds", "y", "skipped:timeout", "z", "skipped:budget"}, all[1:2]},
		{"the inventory", 8 * time.Second, func(b *bench) { b.kids.inventory = always(inventorying(ever, state.Inventory{})) }, state.OutcomeOK, []string{"x", "holds"}, all[2:]},
		{"probes that cannot be killed", 8 * time.Second, func(b *bench) {
			s := scriptUnkillable()
			b.kids.next = always(s)
			b.t.Cleanup(func() { close(s.release) })
		}, state.OutcomeTimeout, nil, all[2:]},
	} {
		subtest(t, c.name, func(t *testing.T) {
			b := benchOf(t, onceOK(time.Second), func(cfg *Config) { cfg.Within = c.within }, "a")
			c.change(b)
			took, err := b.once(t.Context())
			if err != nil || took > c.within {
				t.Errorf("it took %v and ended with %v", took, err)
			}
			dev := stateOf(t, b.Snapshot(), "a")
			var outcome state.Outcome
			if dev.Last != nil {
				outcome = dev.Last.Outcome
			}
			wantEqual(t, "the outcome of the probes", outcome, c.probes)
			wantEqual(t, "the verdicts", b.verdicts("a"), c.verdicts)
			wantEqual(t, "what there was no time for", missingOf(dev), c.missing)
		})
	}
}

// deaf is a child that never ends, whose kill does not return.
type deaf struct {
	child.Process
	hung <-chan struct{}
}

func (d deaf) Done() <-chan struct{} { return d.hung }
func (d deaf) Kill()                 { <-d.hung }

// blocked is an observer that does not return for contract runs.
type blocked struct {
	*recorder
	hung <-chan struct{}
}

func (b blocked) Observe(run *state.Run) {
	if run.Kind == state.KindContract {
		<-b.hung
	}
}

// TestOnceWithinWhateverHangs verifies that it is done in time even if something never returns
// that usually takes no time.
func TestOnceWithinWhateverHangs(t *testing.T) {
	t.Parallel()
	all := []state.Kind{state.KindProbe, state.KindContract, state.KindInventory}
	for _, c := range []struct {
		name   string
		change func(b *bench, hung <-chan struct{})
		// unknown is true if there is no list of devices.
		unknown bool
		missing []state.Kind
	}{
		{"the list of devices", func(b *bench, hung <-chan struct{}) {
			b.cfg.Discover = func() ([]string, error) { <-hung; return nil, nil }
		}, true, nil},
		{"the list of devices at the end", func(b *bench, hung <-chan struct{}) {
			calls := 0
			b.cfg.Discover = func() ([]string, error) {
				if calls++; calls > 1 {
					<-hung
				}
				return []string{"a"}, nil
			}
		}, false, nil},
		{"an observer", func(b *bench, hung <-chan struct{}) {
			b.cfg.Observers = []Observer{blocked{newRecorder(), hung}}
		}, false, all[1:]},
		{"the start of a child", func(b *bench, hung <-chan struct{}) {
			b.launch = func(_ child.Command, out io.WriteCloser) child.Process { return unstarted{out: out, ended: hung} }
		}, false, all[2:]},
		{"a kill", func(b *bench, hung <-chan struct{}) {
			b.launch = func(c child.Command, out io.WriteCloser) child.Process {
				p := b.kids.launch(c, out)
				go func() { <-hung; p.Kill() }()
				return deaf{p, hung}
			}
		}, false, all},
	} {
		subtest(t, c.name, func(t *testing.T) {
			hung := make(chan struct{})
			b := benchOf(t, onceOK(time.Second), func(cfg *Config) { cfg.Within = 8 * time.Second }, "a")
			c.change(b, hung)
			if took, err := b.once(t.Context()); err != nil || took > 8*time.Second {
				t.Errorf("it took %v and ended with %v", took, err)
			}
			last := b.Snapshot()
			wantEqual(t, "that devices could not be listed", last.DiscoveryError != "", c.unknown)
			if !c.unknown {
				wantEqual(t, "missing", missingOf(stateOf(t, last, "a")), c.missing)
			}
			close(hung)
			synctest.Wait()
			if b.Snapshot() != last {
				t.Error("there is a snapshot after the last one")
			}
		})
	}
}

// missingOf returns the kinds of run for which there was no time.
func missingOf(dev state.DeviceState) []state.Kind {
	if dev.OutOfTime == nil {
		return nil
	}
	return dev.OutOfTime.Kinds
}

// TestOnceDevicesChange verifies what a second look at the devices changes: one that has vanished
// stays as not present, and if they cannot be listed, none has.
func TestOnceDevicesChange(t *testing.T) {
	t.Parallel()
	cannot := errors.New("permission denied")
	for _, c := range []struct {
		name          string
		first, second error
		then          []string
		want          string
	}{
		{"none vanishes", nil, nil, []string{"a", "b", "c"}, "a true b true "},
		{"one vanishes", nil, nil, []string{"b"}, "a false b true "},
		{"they cannot be listed any more", nil, cannot, nil, "a true b true "},
		{"they cannot be listed", cannot, cannot, nil, ""},
	} {
		subtest(t, c.name, func(t *testing.T) {
			b := benchOf(t, onceOK(time.Second), nil, "a", "b")
			b.host(c.first, "a", "b")
			time.AfterFunc(1500*time.Millisecond, func() { b.host(c.second, c.then...) })
			if _, err := b.once(t.Context()); err != nil {
				t.Error(err)
			}
			var got strings.Builder
			for _, dev := range b.Snapshot().Devices {
				fmt.Fprint(&got, dev.Name, " ", dev.Present, " ")
			}
			wantEqual(t, "devices", got.String(), c.want)
			wantEqual(t, "discovery error", b.Snapshot().DiscoveryError != "", c.first != nil)
			time.Sleep(time.Second)
		})
	}
}

// TestOnceWithinSuspects verifies that devices that hang leave the time to the others.
func TestOnceWithinSuspects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hanging := map[string]bool{"a": true, "b": true, "c": true}
		devices := []string{"a", "b", "c", "d", "e", "f", "g"}
		b := benchOf(t, children{next: func(device string, _ int) script {
			if hanging[device] {
				return scriptHang()
			}
			return scriptOK(time.Second)
		}, checks: func(device string, _ []string, _ int) script {
			if hanging[device] {
				return hangs("x")
			}
			return checked(time.Second, "x", "holds")
		}, inventory: always(inventorying(0, state.Inventory{Index: 1}))}, func(c *Config) { c.Within, c.Concurrency = 40*time.Second, 2 }, devices...)
		if took, err := b.once(t.Context()); err != nil || took > 40*time.Second {
			t.Errorf("it took %v and ended with %v", took, err)
		}
		b.kids.check(t)
		for _, device := range devices {
			if !hanging[device] {
				wantEqual(t, "verdicts on "+device, b.verdicts(device), []string{"x", "holds"})
			}
		}
	})
}
