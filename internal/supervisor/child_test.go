package supervisor

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// runBehaviour runs one real child.
func runBehaviour(t *testing.T, cfg Config) result {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	res := s.runChild(t.Context(), probeTask(s))
	if res.left != nil {
		t.Fatalf("child %d was left", res.left.pid())
	}
	return res
}

// probeTask is what a child does that probes rxe0.
func probeTask(s *Supervisor) task {
	w := newWorker(s, "rxe0")
	return w.task(&w.probes)
}

func TestRunChild(t *testing.T) {
	t.Parallel()
	// The timeout comes true in each child that hangs, so it starts short. It must
	// be long enough for the child to start, and to begin its verb, which nobody can
	// promise: where it was not, the test tries again with a longer one.
	const short = time.Second
	tests := []struct {
		behaviour string
		timeout   time.Duration
		outcome   state.Outcome
		verb      string
		// errs are parts of the error; empty for none.
		errs []string
		// stderr is part of what is kept of the standard error.
		stderr string
	}{
		{behaviour: "ok", outcome: state.OutcomeOK},
		{behaviour: "slow", outcome: state.OutcomeOK},
		{behaviour: "stderr-ok", outcome: state.OutcomeOK, stderr: "yes\n"},
		{behaviour: "grandchild", outcome: state.OutcomeOK},
		{behaviour: "grandchild-escaped", outcome: state.OutcomeOK},
		{behaviour: "failed", outcome: state.OutcomeFailed, errs: []string{"cq: medium: ibv_create_cq: ENOMEM: no room"}},
		{behaviour: "garbage", outcome: state.OutcomeCrashed, verb: "ibv_create_cq", errs: []string{"no report", "line 2", "Segmentation fault"}},
		{behaviour: "truncated", outcome: state.OutcomeCrashed, verb: "ibv_create_qp", errs: []string{"exit status 0", "line 2 is cut off"}},
		{behaviour: "no-end", outcome: state.OutcomeCrashed, verb: "ibv_destroy_cq", errs: []string{"exit status 0", "ends before its last line"}},
		{behaviour: "long-line", outcome: state.OutcomeCrashed, errs: []string{"no report", "too large", "line 1"}},
		{behaviour: "hang", timeout: short, outcome: state.OutcomeTimeout, verb: "ibv_destroy_cq", errs: []string{"in ibv_destroy_cq"}},
		{behaviour: "hang-after-end", timeout: short, outcome: state.OutcomeTimeout, errs: []string{"timed out after "}},
		{behaviour: "hang-closed", timeout: short, outcome: state.OutcomeTimeout, verb: "ibv_destroy_qp", errs: []string{"timed out after "}},
		{behaviour: "ignore-sigterm", timeout: short, outcome: state.OutcomeTimeout, verb: "ibv_destroy_srq", errs: []string{"timed out after "}},
		{behaviour: "grandchild-hang", timeout: short, outcome: state.OutcomeTimeout, verb: "ibv_create_cq", errs: []string{"timed out after "}},
		{behaviour: "grandchild-no-end", outcome: state.OutcomeCrashed, verb: "ibv_create_cq", errs: []string{"exit status 0", "ends before its last line"}},
		{behaviour: "abort", outcome: state.OutcomeCrashed, verb: "ibv_create_srq", errs: []string{"before the end of its report: killed by SIGABRT: assertion failed"}, stderr: "assertion failed\n"},
		{behaviour: "go-abort", outcome: state.OutcomeCrashed, verb: "ibv_create_srq", errs: []string{"exit status 2: SIGABRT: abort"}, stderr: "goroutine"},
		{behaviour: "exit3", outcome: state.OutcomeCrashed, verb: "ibv_modify_qp", errs: []string{"before the end of its report: exit status 3: out of luck"}, stderr: "out of luck\n"},
		{behaviour: "panic", outcome: state.OutcomeCrashed, verb: "ibv_query_device", errs: []string{"exit status 2: panic: all is lost"}, stderr: "main_test.go"},
		{behaviour: "stderr", outcome: state.OutcomeCrashed, errs: []string{"exit status 1: ", "…"}, stderr: "last line\uFFFD\n"},
		{behaviour: "end-exit3", outcome: state.OutcomeCrashed, errs: []string{"after its report: exit status 3"}},
	}
	for _, tt := range tests {
		t.Run(tt.behaviour, func(t *testing.T) {
			t.Parallel()
			pids := t.TempDir()
			cfg := testConfig()
			cfg.Command = childCommand(tt.behaviour, pids)
			if tt.timeout != 0 {
				cfg.Timeout = tt.timeout
			}
			cfg.KillGrace = patience
			t.Cleanup(func() { killAll(pidsIn(t, pids)) })
			begin := time.Now()
			res := runBehaviour(t, cfg)
			for cfg.Timeout < patience && tooShort(res.run, tt.verb) {
				cfg.Timeout *= 4
				res = runBehaviour(t, cfg)
			}
			run := res.run
			if run == nil {
				t.Fatal("the run was given up")
			}
			if run.Outcome != tt.outcome || run.Verb != tt.verb {
				t.Errorf("outcome %q in verb %q, want %q in %q (%s)", run.Outcome, run.Verb, tt.outcome, tt.verb, run.Error)
			}
			if len(tt.errs) == 0 && run.Error != "" {
				t.Errorf("error %q, want none", run.Error)
			}
			for _, e := range tt.errs {
				if !strings.Contains(run.Error, e) {
					t.Errorf("error %q lacks %q", run.Error, e)
				}
			}
			if len(run.Error) > maxError || strings.ContainsAny(run.Error, "\n\x1b") {
				t.Errorf("error of %d bytes: %q", len(run.Error), run.Error)
			}
			if !strings.Contains(res.stderr, tt.stderr) || len(res.stderr) > maxTail+16 {
				t.Errorf("%d bytes of stderr %q, want some with %q", len(res.stderr), res.stderr, tt.stderr)
			}
			if run.Kind != state.KindProbe || run.Device != "rxe0" || run.Started.Before(begin) || run.Duration <= 0 {
				t.Errorf("%s of device %q, started %v, took %v", run.Kind, run.Device, run.Started, run.Duration)
			}
			if !strings.HasPrefix(tt.behaviour, "grandchild") || tt.behaviour == "grandchild" || tt.behaviour == "grandchild-hang" {
				for _, pid := range pidsIn(t, pids) {
					eventually(t, "nothing of the child is left", func() bool { return !lives(pid) })
				}
			}
		})
	}
}

// tooShort reports whether a run was killed before it came to a verb, or to its start.
func tooShort(run *state.Run, verb string) bool {
	return run != nil && (run.Outcome == state.OutcomeTimeout && run.Verb != verb || run.Error == errNotStarted.Error())
}

// killAll ends what escaped from its process group on purpose.
func killAll(pids []int) {
	for _, pid := range pids {
		if lives(pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

func TestRunChildReadsReport(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.Command = childCommand("burn", "")
	run := runBehaviour(t, cfg).run
	if run.Info == nil || run.Info.Firmware != "1.2.3" || len(run.Probes) != 1 || len(run.Calls) != 1 {
		t.Errorf("run %+v", run)
	}
	if run.CPU <= 0 {
		t.Errorf("the child used %v of processor time", run.CPU)
	}
}

func TestRunChildPassesArgumentsAndInput(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.Command = func(state.Kind, string, wire.Request) Command {
		c := childCommand("echo", "")(state.KindProbe, "--help; $(true) \"'\n*", wire.Request{})
		c.Stdin = []byte("the settings")
		return c
	}
	run := runBehaviour(t, cfg).run
	// The reader makes a space of the newline in what the child echoes.
	if run.Info == nil || run.Info.Transport != "the settings" || run.Info.Firmware != "--device=--help; $(true) \"' *" {
		t.Errorf("the child was given %+v (%s)", run.Info, run.Error)
	}
}

func TestRunChildWithLargeUnreadInput(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.Command = func(state.Kind, string, wire.Request) Command {
		c := childCommand("ok", "")(state.KindProbe, "rxe0", wire.Request{})
		c.Stdin = make([]byte, 4<<20)
		return c
	}
	if run := runBehaviour(t, cfg).run; run.Outcome != state.OutcomeOK {
		t.Errorf("outcome %q: %s", run.Outcome, run.Error)
	}
}

func TestRunChildThatCannotStart(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.Command = func(state.Kind, string, wire.Request) Command { return Command{Path: "/nonexistent/probe"} }
	run := runBehaviour(t, cfg).run
	if run.Outcome != state.OutcomeCrashed || !strings.Contains(run.Error, "start the child: ") {
		t.Errorf("outcome %q: %s", run.Outcome, run.Error)
	}
}

func TestRunChildGivenUp(t *testing.T) {
	t.Parallel()
	pids := t.TempDir()
	cfg := testConfig()
	cfg.Command = childCommand("grandchild-hang", pids)
	cfg.KillGrace = patience
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results := make(chan result, 1)
	go func() { results <- s.runChild(ctx, probeTask(s)) }()
	eventually(t, "child and grandchild run", func() bool { return len(pidsIn(t, pids)) == 2 })
	cancel()
	if res := <-results; res.run != nil || res.left != nil {
		t.Errorf("result %+v", res)
	}
	for _, pid := range pidsIn(t, pids) {
		eventually(t, "nothing of the child is left", func() bool { return !lives(pid) })
	}
}

// The kernel kills a child when the thread that forked it ends. The threads that
// this test ends must not be such.
func TestChildOutlivesThreads(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.Command = childCommand("slow", "")
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
				// A goroutine that ends without unlocking takes its thread along.
				ended := make(chan struct{})
				go func() {
					runtime.LockOSThread()
					close(ended)
				}()
				<-ended
			}
		})
	}
	for range 3 {
		if run := runBehaviour(t, cfg).run; run.Outcome != state.OutcomeOK {
			t.Errorf("outcome %q: %s", run.Outcome, run.Error)
		}
	}
	close(done)
	wg.Wait()
}

// However the process of the supervisor ends, its children end, too.
func TestChildrenDieWithParent(t *testing.T) {
	t.Parallel()
	pids := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), envBehaviour+"=supervisor", envPIDs+"="+pids)
	parent.Stderr = os.Stderr
	parent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killAll(pidsIn(t, pids)) })
	eventually(t, "the children run", func() bool { return len(pidsIn(t, pids)) == 4 })
	for _, pid := range pidsIn(t, pids) {
		if !lives(pid) {
			t.Errorf("process %d is gone too early", pid)
		}
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for _, pid := range pidsIn(t, pids) {
		eventually(t, "the children have ended", func() bool { return !lives(pid) })
	}
}

// Run with real children: everything together, and nothing is left.
func TestRunWithRealChildren(t *testing.T) {
	t.Parallel()
	pids := t.TempDir()
	sink := newRecorder()
	cfg := testConfig()
	cfg.Observers = []Observer{sink}
	cfg.Discover = func() ([]string, error) { return []string{"good", "bad", "ugly"}, nil }
	cfg.Command = func(_ state.Kind, device string, _ wire.Request) Command {
		return childCommand(map[string]string{"good": "ok", "bad": "exit3", "ugly": "hang"}[device], pids)(state.KindProbe, device, wire.Request{})
	}
	cfg.Concurrency = 3
	cfg.Interval = 100 * time.Millisecond
	cfg.KillGrace = patience
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	eventually(t, "good ran 3 times, bad ran twice, ugly hangs", func() bool {
		return sink.count("good") >= 3 && sink.count("bad") >= 2 && len(pidsIn(t, pids)) >= 6
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	for _, pid := range pidsIn(t, pids) {
		if lives(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	for device, want := range map[string]state.Outcome{"good": state.OutcomeOK, "bad": state.OutcomeCrashed} {
		for _, run := range sink.runs(device) {
			if run.Outcome != want {
				t.Errorf("%s: outcome %q: %s", device, run.Outcome, run.Error)
			}
		}
	}
	if n := sink.count("ugly"); n != 0 {
		t.Errorf("%d runs of a child that was given up", n)
	}
}

func TestExitString(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]exit{
		"exit status 0":        {},
		"exit status 3":        {status: 3},
		"killed by SIGSEGV":    {signal: unix.SIGSEGV},
		"killed by signal 100": {signal: 100},
	} {
		if e.String() != want || e.ok() != (want == "exit status 0") {
			t.Errorf("%+v: %q, want %q", e, e.String(), want)
		}
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	failed := func(fs ...state.Failure) *state.Run {
		return &state.Run{Probes: []state.Probe{{Name: "qp", Status: state.StatusFailed, Failures: fs}}}
	}
	tests := []struct {
		name string
		run  *state.Run
		want string
	}{
		{"nothing", &state.Run{Probes: []state.Probe{{Name: "cq", Status: state.StatusOK}, {Name: "srq", Status: state.StatusSkipped}}}, ""},
		{"not at all", &state.Run{Error: "no device"}, "no device"},
		{"a violated contract is none", &state.Run{Kind: state.KindContract, Contracts: []state.Contract{{Name: "notify_any", Verdict: state.VerdictViolated}}}, ""},
		{"a contract run that left an object", &state.Run{Kind: state.KindContract, Undestroyed: []state.Undestroyed{{Type: "cq", Errno: "EBUSY", Attempts: 5}}}, "cq: not destroyed: EBUSY after 5 attempts"},
		{"without a word", failed(), "qp: failed"},
		{"message names all", failed(state.Failure{Subject: state.Subject{Object: "qp", QPType: "rc", Profile: "small"}, Verb: "ibv_create_qp", Errno: "EINVAL", Message: "ibv_create_qp on rxe0: EINVAL (invalid argument)"}), "qp: rc small: ibv_create_qp on rxe0: EINVAL (invalid argument)"},
		{"wrong result", failed(state.Failure{Subject: state.Subject{Object: "qp", QPType: "rc", Profile: "small"}, Message: "got 3 of 4"}), "qp: rc small: got 3 of 4"},
		{"many", failed(state.Failure{Message: "a"}, state.Failure{Message: "b"}, state.Failure{Message: "c"}, state.Failure{Message: "d"}, state.Failure{Message: "e"}), "qp: a; qp: b; qp: c; and 2 more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := failure(tt.run); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
