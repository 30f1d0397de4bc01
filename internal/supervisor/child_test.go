package supervisor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
)

// newShell returns a supervisor whose children run a script, and leave their ids in the folder.
func newShell(t *testing.T, script string, timeout time.Duration) (s *Supervisor, pids string) {
	t.Helper()
	cfg := testConfig()
	pids = t.TempDir()
	cfg.Command = func(state.Kind, string, wire.Request) child.Command { return shell(script, pids) }
	cfg.Timeout, cfg.KillGrace = timeout, patience
	s = running.Must(New(cfg))(t)
	return s, pids
}

// probe runs one child that probes rxe0.
func probe(ctx context.Context, s *Supervisor) result {
	w := newWorker(s, "rxe0")
	return s.runChild(ctx, w.task(&w.probes))
}

// Parts of scripts: lines of reports, and the ends of children.
const (
	sayBegin = `echo '{"begin":"ibv_create_cq"}'; `
	sayWhole = sayBegin + `echo '{"call":{"verb":"ibv_create_cq","ns":1}}'; echo '{"device":{"transport":"InfiniBand"}}'; echo '{"end":{}}'; `
	hang     = `exec sleep 1000`
	work     = `i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; `
	spawn    = `sleep 1000 & : >"$0/$!"; `
)

func TestRunChild(t *testing.T) {
	t.Parallel()
	// The timeout comes true in each child that hangs, so it starts short. If it was not long
	// enough for the child to begin its verb, the test tries again with a longer one.
	const short = time.Second
	for name, tt := range map[string]struct {
		script  string
		timeout time.Duration
		outcome state.Outcome
		verb    string
		// errs are parts of the error. Empty means no error.
		errs []string
		// stderr is part of the kept standard error.
		stderr string
	}{
		"ok":                   {work + sayWhole, patience, state.OutcomeOK, "", nil, ""},
		"much on stderr":       {`yes | head -c 1000000 >&2; ` + sayWhole, patience, state.OutcomeOK, "", nil, "y\n"},
		"leaves a process":     {spawn + sayWhole, patience, state.OutcomeOK, "", nil, ""},
		"failed":               {`echo '{"probe":{"name":"cq","status":"failed","failures":[{"subject":{"object":"cq","profile":"medium"},"verb":"ibv_create_cq","errno":"ENOMEM","message":"no room"}]}}'; echo '{"end":{}}'`, patience, state.OutcomeFailed, "", []string{"cq: medium: ibv_create_cq: ENOMEM: no room"}, ""},
		"garbage":              {sayBegin + `echo Segmentation fault; ` + hang, patience, state.OutcomeCrashed, "ibv_create_cq", []string{"no report", "line 2", "Segmentation fault"}, ""},
		"cut off":              {sayBegin + `printf '{"call":{"ver'`, patience, state.OutcomeCrashed, "ibv_create_cq", []string{"exit status 0", "line 2 is cut off"}, ""},
		"no end":               {sayBegin, patience, state.OutcomeCrashed, "ibv_create_cq", []string{"exit status 0", "ends before its last line"}, ""},
		"long line":            {`exec cat /dev/zero`, patience, state.OutcomeCrashed, "", []string{"no report", "too large", "line 1"}, ""},
		"hangs":                {sayBegin + hang, short, state.OutcomeTimeout, "ibv_create_cq", []string{"timed out after ", "in ibv_create_cq"}, ""},
		"hangs at the end":     {sayWhole + hang, short, state.OutcomeTimeout, "", []string{"timed out after "}, ""},
		"closes and hangs":     {sayBegin + hang + ` >&-`, short, state.OutcomeTimeout, "ibv_create_cq", []string{"timed out after "}, ""},
		"two hang":             {sayBegin + spawn + hang, short, state.OutcomeTimeout, "ibv_create_cq", []string{"timed out after "}, ""},
		"aborts":               {sayBegin + `ulimit -c 0; echo assertion failed >&2; kill -ABRT $$`, patience, state.OutcomeCrashed, "ibv_create_cq", []string{"before the end of its report: killed by SIGABRT: assertion failed"}, "assertion failed\n"},
		"exits":                {sayBegin + `echo out of luck >&2; exit 3`, patience, state.OutcomeCrashed, "ibv_create_cq", []string{"before the end of its report: exit status 3: out of luck"}, "out of luck\n"},
		"unprintable":          {`yes | head -c 1000000 >&2; printf 'the\033[31m last line\377\n' >&2; exit 1`, patience, state.OutcomeCrashed, "", []string{"exit status 1: ", "last line"}, "last line\uFFFD\n"},
		"exits after a report": {sayWhole + `exit 3`, patience, state.OutcomeCrashed, "", []string{"after its report: exit status 3"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pids := newShell(t, tt.script, tt.timeout)
			begin := time.Now()
			res := probe(t.Context(), s)
			for s.cfg.Timeout < patience && (res.run.Verb != tt.verb || res.run.Error == "the child did not start in time") {
				s.cfg.Timeout *= 4
				res = probe(t.Context(), s)
			}
			run := res.run
			if run.Outcome != tt.outcome || run.Verb != tt.verb || res.left != nil {
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
			if name == "ok" && (run.Info == nil || run.Info.Transport != "InfiniBand" || len(run.Calls) != 1 || run.CPU <= 0) {
				t.Errorf("run %+v", run)
			}
			if len(run.Error) > maxError || strings.ContainsAny(run.Error, "\n\x1b") {
				t.Errorf("error of %d bytes: %q", len(run.Error), run.Error)
			}
			if !strings.Contains(res.stderr, tt.stderr) || len(res.stderr) > child.MaxTail+16 {
				t.Errorf("%d bytes of stderr %q, want some with %q", len(res.stderr), res.stderr, tt.stderr)
			}
			if run.Kind != state.KindProbe || run.Device != "rxe0" || run.Started.Before(begin) || run.Duration <= 0 {
				t.Errorf("%s of device %q, started %v, took %v", run.Kind, run.Device, run.Started, run.Duration)
			}
			awaitNone(t, pids)
		})
	}
}

func TestRunChildThatCannotStart(t *testing.T) {
	t.Parallel()
	s, _ := newShell(t, "", patience)
	s.cfg.Command = func(state.Kind, string, wire.Request) child.Command { return child.Command{Path: "/nonexistent/probe"} }
	s.once = true // It does not try for ever.
	if res := probe(t.Context(), s); res.run != nil || !errors.Is(res.notStarted, syscall.ENOENT) || !strings.Contains(s.Snapshot().StartError, "start the child: ") {
		t.Errorf("%+v, %q", res, s.Snapshot().StartError)
	}
}

func TestRunChildCancelled(t *testing.T) {
	t.Parallel()
	s, pids := newShell(t, spawn+hang, patience)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results := make(chan result, 1)
	go func() { results <- probe(ctx, s) }()
	eventually(t, "child and grandchild run", func() bool { return len(pidsIn(t, pids)) == 2 })
	cancel()
	if res := <-results; res.run != nil || res.left != nil {
		t.Errorf("result %+v", res)
	}
	awaitNone(t, pids)
}

// TestChildOutlivesThreads verifies that the end of a thread ends no child, as the kernel does
// with the thread that forked it.
func TestChildOutlivesThreads(t *testing.T) {
	t.Parallel()
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
	s, _ := newShell(t, "sleep 0.3; "+sayWhole, patience)
	for range 3 {
		if run := probe(t.Context(), s).run; run.Outcome != state.OutcomeOK {
			t.Errorf("outcome %q: %s", run.Outcome, run.Error)
		}
	}
	close(done)
	wg.Wait()
}

func TestChildrenDieWithParent(t *testing.T) {
	t.Parallel()
	pids := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), envPIDs+"="+pids)
	parent.Stderr = os.Stderr
	parent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	running.Check(t, parent.Start())
	t.Cleanup(func() { killAll(pidsIn(t, pids)) })
	eventually(t, "the children run", func() bool { return len(pidsIn(t, pids)) == 3 })
	for _, pid := range pidsIn(t, pids) {
		if !lives(pid) {
			t.Errorf("process %d is gone too early", pid)
		}
	}
	running.Check(t, parent.Process.Kill())
	_ = parent.Wait()
	awaitNone(t, pids)
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
