package supervisor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
)

// bubble runs a test in virtual time, in parallel with others.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func subtest(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, test) })
}

// bench is a supervisor with fake children in virtual time.
type bench struct {
	*Supervisor
	t     *testing.T
	kids  *fakes
	sink  *recorder
	log   *logged
	stop  context.CancelFunc
	ended chan error

	mu       sync.Mutex
	devices  []string
	err      error
	requests map[state.Kind][]wire.Request
}

// newBench returns a bench with probe runs only.
func newBench(t *testing.T, next of, change func(*Config), devices ...string) *bench {
	t.Helper()
	return benchOf(t, children{next: next}, change, devices...)
}

// benchOf returns a bench without jitter. It must be called in a bubble.
func benchOf(t *testing.T, c children, change func(*Config), devices ...string) *bench {
	t.Helper()
	b := &bench{
		t: t, kids: newFakes(c), sink: newRecorder(), log: &logged{}, ended: make(chan error, 1),
		devices: devices, requests: make(map[state.Kind][]wire.Request),
	}
	cfg := testConfig()
	cfg.Discover = b.discover
	cfg.Command = func(kind state.Kind, device string, r wire.Request) child.Command {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.requests[kind] = append(b.requests[kind], r)
		return fakeCommand(kind, device, r)
	}
	if c.checks != nil {
		cfg.Contract = Schedule{Interval: time.Hour, Timeout: 20 * time.Second}
	}
	if c.inventory != nil {
		cfg.Inventory = Schedule{Interval: time.Minute, Timeout: 10 * time.Second}
	}
	if c.hardware != nil {
		cfg.Hardware = Schedule{Interval: 15 * time.Second, Timeout: 5 * time.Second}
	}
	cfg.Observers = []Observer{b.sink}
	cfg.Interval, cfg.Timeout, cfg.Concurrency = time.Minute, 10*time.Second, 10
	cfg.Logger = b.log.logger(slog.LevelInfo)
	cfg.Jitter = 0
	if change != nil {
		change(&cfg)
	}
	s := running.Must(New(cfg))(t)
	s.launch = b.kids.launch
	b.Supervisor = s
	return b
}

func (b *bench) discover() ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.devices, b.err
}

func (b *bench) asked(kind state.Kind, n int) wire.Request {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if n >= len(b.requests[kind]) {
		b.t.Fatalf("only %d children of kind %s were started", len(b.requests[kind]), kind)
	}
	return b.requests[kind][n]
}

// host makes the host have these devices, or an error instead.
func (b *bench) host(err error, devices ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.devices, b.err = devices, err
}

// start starts the supervisor, which ends with the test at the latest.
func (b *bench) start() {
	ctx, stop := context.WithCancel(b.t.Context())
	b.stop = stop
	go func() {
		b.ended <- b.Run(ctx)
		close(b.ended)
	}()
	b.t.Cleanup(b.end)
	synctest.Wait()
}

// after starts the supervisor, unless it was started, and lets time pass.
func (b *bench) after(d time.Duration) *state.Snapshot {
	if b.stop == nil {
		b.start()
	}
	time.Sleep(d)
	synctest.Wait()
	return b.Snapshot()
}

// end stops the supervisor and waits for its end.
func (b *bench) end() {
	b.t.Helper()
	b.stop()
	if err := <-b.ended; err != nil {
		b.t.Errorf("Run: %v", err)
	}
	synctest.Wait()
	b.kids.check(b.t)
}

func (b *bench) logs(text string) int { return strings.Count(b.log.String(), text) }

func always(s script) of { return func(string, int) script { return s } }

func names(s *state.Snapshot) []string {
	present := *s
	present.Devices = slices.DeleteFunc(slices.Clone(s.Devices), func(d state.DeviceState) bool { return !d.Present })
	return allNames(&present)
}

func allNames(s *state.Snapshot) []string {
	var names []string
	for _, d := range s.Devices {
		names = append(names, d.Name)
	}
	return names
}

func stateOf(t *testing.T, s *state.Snapshot, name string) state.DeviceState {
	t.Helper()
	for _, d := range s.Devices {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("no %s in %v", name, names(s))
	return state.DeviceState{}
}

func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// TestChanged verifies that Changed has a value when a run has ended.
func TestChanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		began := time.Now()
		b := newBench(t, always(scriptOK(time.Second)), func(c *Config) { c.Discovery = 45 * time.Second }, "a")
		var probed []time.Duration // when it was heard that there is a run
		stopped := make(chan struct{})
		go func() {
			for {
				select {
				case <-b.Changed():
				case <-stopped:
					return
				}
				if devices := b.Snapshot().Devices; len(devices) > 0 && devices[0].Last != nil {
					probed = append(probed, time.Since(began))
				}
			}
		}()
		b.after(10 * time.Second)
		close(stopped)
		b.stop()
		if err := <-b.ended; err != nil {
			t.Error(err)
		}
		wantEqual(t, "when a run was heard of", probed, []time.Duration{time.Second})
	})
}

func TestRunsFollowInterval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, always(scriptOK(7*time.Second)), nil, "b", "a")
		b.after(150 * time.Second)
		want := []time.Duration{0, time.Minute, 2 * time.Minute}
		wantEqual(t, "starts on a", b.kids.startsOf("a"), want)
		wantEqual(t, "starts on b", b.kids.startsOf("b"), want)
		wantEqual(t, "devices", names(b.Snapshot()), []string{"a", "b"})
		a := stateOf(t, b.Snapshot(), "a")
		if !a.Present || a.Info == nil || a.Last == nil || a.Last.Outcome != state.OutcomeOK || a.Last.Duration != 7*time.Second ||
			!a.LastSuccess.Equal(a.Last.Started) || a.Failures != 0 || a.Stuck != nil {
			t.Errorf("state %+v, last %+v", a, a.Last)
		}
		if runs := b.sink.runs("a"); len(runs) != 3 || !runs[2].Started.Equal(a.Last.Started) || a.Last.Calls != nil {
			t.Errorf("the sink was handed %v", runs)
		}
	})
}

// TestBackoffAndRecovery verifies that pauses grow while a device fails, that it is warned of once, and
// that the device information is kept.
func TestBackoffAndRecovery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := state.OutcomeFailed
		bad := []state.Outcome{state.OutcomeTimeout, f, f, f, f}
		b := newBench(t, func(_ string, n int) script {
			switch {
			case n == 1:
				return scriptHang()
			case n > 1 && n < 6:
				return scriptFail()
			default:
				return scriptOK(0)
			}
		}, func(c *Config) { c.Backoff = 7 * time.Minute }, "a")
		a := stateOf(t, b.after(20*time.Minute), "a")
		runs := b.sink.runs("a")
		if a.Info == nil || a.Last.Info != nil || !a.LastSuccess.Equal(runs[0].Started) || a.Failures != len(runs)-1 || a.Failures < 2 {
			t.Errorf("state %+v after %d runs", a, len(runs))
		}
		wantEqual(t, "warnings, one an outcome", b.logs("Run on device failed"), 2)
		b.after(20 * time.Minute)
		runs = b.sink.runs("a")
		var pauses []time.Duration
		for i, run := range runs[1:9] {
			pauses = append(pauses, run.Started.Sub(runs[i].Started)-runs[i].Duration)
		}
		m := time.Minute
		wantEqual(t, "pauses", pauses, []time.Duration{m, 2 * m, 4 * m, 7 * m, 7 * m, 7 * m, m, m})
		wantEqual(t, "outcomes", outcomes(runs[1:7]), append(bad, state.OutcomeOK))
		wantEqual(t, "failures", stateOf(t, b.Snapshot(), "a").Failures, 0)
	})
}

// TestNoChildStarts verifies that no device is at fault if no child can be started: the snapshot says
// why, the log says it once, and runs go on as soon as they can.
func TestNoChildStarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, always(scriptOK(0)), nil, "a", "b")
		var works atomic.Bool
		b.launch = func(c child.Command, out io.WriteCloser) child.Process {
			if !works.Load() {
				return notStarted(out, "too many open files")
			}
			return b.kids.launch(c, out)
		}
		failing := b.after(20 * time.Minute)
		wantEqual(t, "error", failing.StartError, "too many open files")
		wantEqual(t, "runs", len(b.sink.runs("a")), 0)
		works.Store(true)
		mended := b.after(time.Minute)
		for _, name := range []string{"a", "b"} {
			if last := stateOf(t, mended, name).Last; last == nil || last.Outcome != state.OutcomeOK {
				t.Errorf("last run of %s: %+v", name, last)
			}
		}
		wantEqual(t, "error", mended.StartError, "")
		wantEqual(t, "errors logged", b.logs("Cannot start children"), 1)
		wantEqual(t, "ends logged", b.logs("Children can be started again"), 1)
	})
}

// TestHungDevicesDelayNoOther verifies that devices that hang leave all slots but one to the
// others.
func TestHungDevicesDelayNoOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hung := []string{"h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"}
		b := newBench(t, func(device string, _ int) script {
			if device == "good" {
				return scriptOK(time.Second)
			}
			return scriptHang()
		}, func(c *Config) { c.Concurrency = 2 }, append(hung, "good")...)
		b.after(2 * time.Hour)
		starts := b.kids.startsOf("good")
		for i := 2; i < len(starts); i++ {
			if d := starts[i] - starts[i-1]; d != time.Minute {
				t.Errorf("run %d on the good device started %v after the one before", i, d)
			}
		}
		if b.kids.most != 2 {
			t.Errorf("%d children at once, want 2", b.kids.most)
		}
		for _, d := range hung {
			if n := b.sink.count(d); n < 5 {
				t.Errorf("%d runs on %s", n, d)
			}
		}
	})
}

// TestChildDoesNotStart verifies that a program that is not loaded in time costs its run, and
// that its device waits for it.
func TestChildDoesNotStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, always(scriptOK(time.Second)), nil, "a")
		launch, release := b.launch, make(chan struct{})
		b.launch = func(c child.Command, out io.WriteCloser) child.Process {
			b.launch = launch
			return unstarted{out: out, ended: release}
		}
		a := stateOf(t, b.after(13*time.Second), "a")
		if a.Last == nil || a.Last.Outcome != state.OutcomeCrashed || !strings.Contains(a.Last.Error, "did not start in time") || a.Stuck == nil {
			t.Errorf("last run %+v", a.Last)
		}
		close(release)
		b.after(10 * time.Minute)
		if n := b.sink.count("a"); n < 5 {
			t.Errorf("%d runs after the program could be loaded", n)
		}
	})
}

func TestReady(t *testing.T) {
	t.Parallel()
	subtest(t, "no devices", func(t *testing.T) {
		b := newBench(t, always(scriptOK(0)), nil)
		if s := b.Snapshot(); s == nil || s.Ready || len(s.Devices) != 0 || s.Provider != "simulated" {
			t.Errorf("before the start: %+v", s)
		}
		b.start()
		if !b.Snapshot().Ready {
			t.Error("not ready")
		}
	})
	subtest(t, "after the last first run", func(t *testing.T) {
		b := newBench(t, func(device string, _ int) script {
			return map[string]script{"quick": scriptOK(0), "slow": scriptOK(3 * time.Second), "gone": scriptHang()}[device]
		}, func(c *Config) { c.Discovery = 5 * time.Second }, "gone", "quick", "slow")
		b.start()
		b.host(nil, "quick", "slow", "late")
		if b.after(4 * time.Second).Ready {
			t.Error("ready before every device was probed")
		}
		if !b.after(time.Second).Ready {
			t.Error("not ready when every first device was probed or has vanished")
		}
	})
	subtest(t, "stuck", func(t *testing.T) {
		child := scriptUnkillable()
		b := newBench(t, always(child), nil, "a")
		if b.after(10 * time.Second).Ready {
			t.Error("ready before the child was given up")
		}
		if !b.after(10 * time.Second).Ready {
			t.Error("not ready when the child is stuck")
		}
		close(child.release)
	})
	subtest(t, "error at first", func(t *testing.T) {
		b := newBench(t, always(scriptOK(0)), nil)
		b.host(errors.New("not now"))
		b.start()
		if s := b.Snapshot(); s.Ready || s.DiscoveryError != "not now" {
			t.Errorf("snapshot %+v", s)
		}
		b.host(nil, "a")
		if s := b.after(6 * time.Second); !s.Ready || s.DiscoveryError != "" || len(s.Devices) != 1 {
			t.Errorf("snapshot %+v", s)
		}
	})
}

func TestDevicesComeAndGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, always(scriptOK(0)), nil, "a", "b")
		first := b.after(time.Second)
		b.host(nil, "b", "c")
		snap := b.after(5 * time.Second)
		wantEqual(t, "devices", names(snap), []string{"b", "c"})
		wantEqual(t, "devices of an old snapshot", names(first), []string{"a", "b"})
		b.after(10 * time.Minute)
		if n := b.sink.count("a"); n != 1 {
			t.Errorf("%d runs on a, want 1", n)
		}
		// Which comes first is open: they are two devices.
		told := b.sink.told()[2:4]
		slices.Sort(told)
		wantEqual(t, "told", told, []string{"a forgotten", "c ok"})

		b.host(nil, "a", "b", "c")
		a := stateOf(t, b.after(5*time.Second), "a")
		if n := b.sink.count("a"); n != 2 || !a.Last.Started.Equal(b.sink.runs("a")[1].Started) {
			t.Errorf("%d runs, state %+v", n, a)
		}
		b.end()
		told = b.sink.told()
		if n := len(told) - len(slices.DeleteFunc(slices.Clone(told), func(s string) bool { return s == "a forgotten" })); n != 1 {
			t.Errorf("a was forgotten %d times", n)
		}
		wantEqual(t, "found", b.logs("Device found"), 4)
		wantEqual(t, "vanished", b.logs("Device vanished"), 1)
	})
}

// TestVanishedWhileBusy verifies that a device that vanishes is forgotten at once, whether it waits for a
// slot or is probed.
func TestVanishedWhileBusy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, always(scriptHang()), func(c *Config) { c.Timeout, c.Concurrency = time.Hour, 1 }, "a", "b", "c")
		b.start()
		busy := b.kids.order[0]
		b.host(nil, busy)
		b.after(5 * time.Second)
		wantEqual(t, "forgotten", len(b.sink.told()), 2)
		wantEqual(t, "devices", names(b.Snapshot()), []string{busy})
		b.host(nil)
		if snap := b.after(5 * time.Second); len(names(snap)) != 0 || !snap.Ready {
			t.Errorf("snapshot %+v", snap)
		}
		wantEqual(t, "kills", b.kids.kills, map[string]int{busy: 1})
		b.end()
		if told := b.sink.told(); len(told) != 3 || told[2] != busy+" forgotten" {
			t.Errorf("told %q", told)
		}
	})
}

func TestDiscoveryError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, always(scriptOK(0)), nil, "a")
		b.start()
		b.host(errors.New("no\npermission"))
		snap := b.after(10 * time.Minute)
		wantEqual(t, "devices", names(snap), []string{"a"})
		wantEqual(t, "error", snap.DiscoveryError, "no permission")
		if n := b.sink.count("a"); n < 10 {
			t.Errorf("%d runs on a device that is known", n)
		}
		wantEqual(t, "warnings", b.logs("Cannot list the devices"), 1)
		b.host(errors.New("something else"))
		b.after(time.Minute)
		wantEqual(t, "warnings", b.logs("Cannot list the devices"), 2)
		b.host(nil, "a")
		snap = b.after(time.Minute)
		wantEqual(t, "error", snap.DiscoveryError, "")
		wantEqual(t, "recoveries", b.logs("can be listed again"), 1)
	})
}

// TestNameIsNotUTF8 verifies that a device whose name cannot be a label is left out, and no other.
func TestNameIsNotUTF8(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, always(scriptOK(0)), nil, "-f $(x)", "...", "\xff", "a", "é")
		snap := b.after(10 * time.Minute)
		wantEqual(t, "devices", names(snap), []string{"-f $(x)", "...", "a", "é"})
		b.host(nil, "a", "\xff")
		snap = b.after(10 * time.Minute)
		wantEqual(t, "devices", names(snap), []string{"a"})
		wantEqual(t, "error", snap.DiscoveryError, `the name "\xff" of a device is not UTF-8: exclude or rename it`)
	})
}

func TestStuck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		child := scriptUnkillable()
		b := newBench(t, func(device string, n int) script {
			if device == "bad" && n == 0 {
				return child
			}
			return scriptOK(time.Second)
		}, func(c *Config) { c.Concurrency = 1 }, "bad", "good")
		begin := time.Now()
		snap := b.after(25 * time.Second)
		bad := stateOf(t, snap, "bad")
		if bad.Last == nil || bad.Last.Outcome != state.OutcomeTimeout || bad.Last.Verb != "ibv_destroy_cq" ||
			!strings.Contains(bad.Last.Error, "cannot be killed") || !bad.Present || bad.Failures != 1 {
			t.Fatalf("state %+v, last %+v", bad, bad.Last)
		}
		if bad.Stuck == nil || bad.Stuck.Verb != "ibv_destroy_cq" || bad.Stuck.PID < 1000 || bad.Stuck.Since.Before(begin.Add(10*time.Second)) {
			t.Errorf("stuck %+v", bad.Stuck)
		}
		b.after(time.Hour)
		wantEqual(t, "children of the stuck device", len(b.kids.startsOf("bad")), 1)
		if n := b.sink.count("good"); n < 59 {
			t.Errorf("%d runs on the good device while the other was stuck", n)
		}
		wantEqual(t, "warnings", b.logs("does not end"), 1)

		close(child.release)
		bad = stateOf(t, b.after(0), "bad")
		if bad.Stuck != nil || bad.Last.Outcome != state.OutcomeTimeout {
			t.Errorf("state %+v", bad)
		}
		wantEqual(t, "messages", b.logs("killed child has ended"), 1)
		bad = stateOf(t, b.after(150*time.Second), "bad")
		if bad.Last.Outcome != state.OutcomeOK || bad.Failures != 0 {
			t.Errorf("state %+v", bad)
		}
		b.end()
		wantEqual(t, "kills", b.kids.kills["bad"], 1)
	})
}

func TestStuckAndVanished(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"vanishes while probed", "vanishes while stuck"} {
		subtest(t, when, func(t *testing.T) {
			child := scriptUnkillable()
			b := newBench(t, func(_ string, n int) script {
				if n == 0 {
					return child
				}
				return scriptOK(0)
			}, nil, "a")
			b.start()
			observed := 0
			if when == "vanishes while stuck" {
				b.after(20 * time.Second)
				observed = 1
			}
			b.host(nil)
			snap := b.after(10 * time.Minute)
			a := stateOf(t, snap, "a")
			if a.Present || a.Stuck == nil || a.Stuck.Verb != "ibv_destroy_cq" || !snap.Ready {
				t.Errorf("state %+v", a)
			}
			wantEqual(t, "events", len(b.sink.told()), observed)

			b.host(nil, "a")
			a = stateOf(t, b.after(10*time.Minute), "a")
			if !a.Present || a.Stuck == nil || a.Last != nil {
				t.Errorf("state %+v after it came back", a)
			}
			wantEqual(t, "events", len(b.sink.told()), observed)
			wantEqual(t, "children", len(b.kids.startsOf("a")), 1)

			close(child.release)
			a = stateOf(t, b.after(time.Second), "a")
			if !a.Present || a.Stuck != nil || a.Last == nil || a.Last.Outcome != state.OutcomeOK {
				t.Errorf("state %+v after the child ended", a)
			}
			wantEqual(t, "told", b.sink.told()[observed:], []string{"a forgotten", "a ok"})
		})
	}
}

// TestRunEndsWithStuckChild verifies that Run returns although a child is stuck, known or not.
func TestRunEndsWithStuckChild(t *testing.T) {
	t.Parallel()
	for _, before := range []time.Duration{time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			child := scriptUnkillable()
			b := newBench(t, always(child), nil, "a")
			b.after(before)
			stopped := time.Now()
			b.stop()
			if err := <-b.ended; err != nil {
				t.Errorf("Run: %v", err)
			}
			if d := time.Since(stopped); d > DefaultConfig().KillGrace+pipeGrace {
				t.Errorf("Run took %v to end", d)
			}
			if stateOf(t, b.Snapshot(), "a").Stuck == nil {
				t.Error("the snapshot does not tell of the child that is left")
			}
			close(child.release)
			synctest.Wait()
			b.kids.check(t)
		})
	}
}

func TestRunEndsWithBusyChildren(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, always(scriptHang()), func(c *Config) { c.Concurrency = 2 }, "a", "b", "c")
		b.after(time.Second)
		b.end()
		if told := b.sink.told(); len(told) != 0 {
			t.Errorf("told %v", told)
		}
		if err := b.Run(t.Context()); !errors.Is(err, ErrStarted) {
			t.Errorf("second Run: %v", err)
		}
	})
}
