package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
	"rdma_exporter/internal/wire"
)

// maxError limits the error of a run, in bytes.
const maxError = 1024

type task struct {
	device  string
	kind    state.Kind
	timeout time.Duration
	request wire.Request
}

type result struct {
	// run is the finished run. Nil means that it was cancelled.
	run *state.Run
	// stderr is the end of the child's standard error.
	stderr string
	// left is the child if it was killed and has not ended. Nil otherwise.
	left child.Process
	// killed is when left was killed, and verb the verb that it is in.
	killed time.Time
	verb   string
	// partial is the unfinished run, if it was cancelled because the time of RunOnce was up.
	partial *state.Run
	// notStarted is why the child could not be started. Then there is no run.
	notStarted error
	// died is true if the child crashed or hung in a verb, so that the verb was the cause.
	died bool
}

// hangTime is how long a child in a verb must be silent to count as hanging there.
const hangTime = time.Second

// budgetHangTime is hangTime for a child that was killed because the time of RunOnce was up,
// which can be at any moment.
const budgetHangTime = 5 * time.Second

// listener notes when something was last read.
type listener struct {
	io.Reader
	last  atomic.Int64 // since began
	began time.Time
}

func (l *listener) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if n > 0 {
		l.last.Store(int64(time.Since(l.began)))
	}
	return n, err
}

// silence is how long nothing had been read at a time.
func (l *listener) silence(at time.Time) time.Duration {
	return at.Sub(l.began) - time.Duration(l.last.Load())
}

// ending is why the supervisor stopped waiting for a child.
type ending int

const (
	endedItself    ending = iota
	endedTimeout          // killed at its deadline
	endedGarbage          // killed for what it wrote
	endedCancelled        // killed because the run was cancelled
)

// The pauses between attempts to start a child. RunOnce gives up when the pause would be longer than
// the first ones.
const (
	firstStartPause   = 100 * time.Millisecond
	longestStartPause = 10 * time.Second
	onceStartPause    = time.Second
)

// runChild runs one child. If none can be started, because the exporter or the host lacks something,
// no device is at fault: it tries again until ctx is done, and the snapshot says so. In RunOnce it soon
// gives up.
func (s *Supervisor) runChild(ctx context.Context, t task) result {
	for wait := firstStartPause; ; wait = min(2*wait, longestStartPause) {
		res := s.tryChild(ctx, t)
		if res.notStarted == nil {
			return res
		}
		last := s.once && wait > onceStartPause
		if last || !s.once {
			s.noteStart(time.Now(), res.notStarted)
		}
		if last || !pause(ctx, wait) {
			return res
		}
	}
}

// noteStart notes that a child was or could not be started at a time. A child that was started before
// the last failure says nothing of it, and what RunOnce gave up stays undone.
func (s *Supervisor) noteStart(at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.startError
	switch {
	case err != nil:
		s.startError, s.startFailed = text.OneLine(err.Error(), maxError), at
		if before == "" {
			s.cfg.Logger.Error("Cannot start children: nothing is probed until that works", "error", s.startError)
		}
	case before != "" && !s.once && at.After(s.startFailed):
		s.startError = ""
		s.cfg.Logger.Info("Children can be started again")
	}
	if s.startError != before {
		s.publish()
	}
}

// tryChild runs one child until it exits or is killed, because it takes too long, writes no report,
// or ctx is done. It takes no longer than the timeout and the graces for a kill and for the pipes.
func (s *Supervisor) tryChild(ctx context.Context, t task) result {
	run := &state.Run{Kind: t.kind, Device: t.device, Started: time.Now()}
	out, in := io.Pipe()
	p := s.launch(s.cfg.Command(t.kind, t.device, t.request), in)
	// The reader alone touches run until it has returned.
	read := make(chan error, 1)
	heard := &listener{Reader: out, began: run.Started}
	go func() {
		err := wire.Read(heard, run)
		_ = out.Close() // so that the child's writes fail
		read <- err
	}()

	why, hasRead, readErr := s.await(ctx, p, read, t.timeout)
	res := result{killed: time.Now()}
	if why != endedItself {
		p.Kill()
		if !within(s.remaining(s.cfg.KillGrace+pipeGrace), p.Done()) {
			res.left = p
			_ = out.Close()
		}
	}
	duration := time.Since(run.Started)
	if !hasRead {
		readErr = <-read // All that an ended child wrote is there.
	}

	if p.PID() != 0 {
		s.noteStart(run.Started, nil)
	}
	run.Duration = duration
	stderr := p.Stderr()
	res.stderr, res.verb = stderr.Tail, run.Verb
	var e child.Exit
	if res.left == nil {
		e = p.Exit()
		run.CPU = e.CPU
	}
	if why == endedItself && unusable(readErr) {
		why = endedGarbage
	}
	if why == endedCancelled && isBudget(ctx) {
		if res.left == nil && (run.Verb == "" || heard.silence(res.killed) < budgetHangTime) {
			res.partial = run
			return res
		}
		why, t.timeout = endedTimeout, duration.Round(time.Second)
	}
	switch {
	case why == endedCancelled:
		return res // The device is not at fault.
	case e.Err != nil:
		res.notStarted = e.Err
		return res
	case p.PID() == 0:
		// The program was not loaded. That can block forever, if the server of its file is gone.
		run.Outcome, run.Error = state.OutcomeCrashed, "the child did not start in time"
	case why == endedTimeout:
		run.Outcome, run.Error = state.OutcomeTimeout, fmt.Sprintf("timed out after %v", t.timeout)+text.Around(" in ", run.Verb, "")
		if res.left != nil {
			run.Error += "; the child cannot be killed"
		}
		res.died = run.Verb != "" && heard.silence(res.killed) >= hangTime
	case why == endedGarbage:
		run.Outcome, run.Error = state.OutcomeCrashed, withReason("the child's output is no report: "+readErr.Error(), stderr)
	default:
		conclude(run, readErr, e, stderr)
		res.died = run.Outcome == state.OutcomeCrashed && run.Verb != "" && e.Fault()
	}
	res.run = run
	return res
}

// await waits until the child has exited or must be killed. It also reports whether the reader
// has returned, and its error.
func (s *Supervisor) await(ctx context.Context, p child.Process, read <-chan error, timeout time.Duration) (why ending, hasRead bool, readErr error) {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		select {
		case <-p.Done():
			return endedItself, hasRead, readErr
		case readErr = <-read:
			hasRead = true
			if unusable(readErr) {
				return endedGarbage, true, readErr
			}
			// The child has closed its output, which is not yet its end.
			read = nil
		case <-deadline.C:
			if within(0, p.Done()) {
				return endedItself, hasRead, readErr
			}
			return endedTimeout, hasRead, readErr
		case <-ctx.Done():
			return endedCancelled, hasRead, readErr
		}
	}
}

func within(d time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
	}
	select {
	case <-done: // This process may have been stopped meanwhile.
		return true
	default:
		return false
	}
}

// unusable reports whether a reader's error means more than that the report has no end.
func unusable(err error) bool { return err != nil && !errors.Is(err, wire.ErrTruncated) }

// conclude sums up the run of a child that exited by itself.
func conclude(run *state.Run, readErr error, e child.Exit, stderr child.Stderr) {
	run.Outcome = state.OutcomeCrashed
	switch {
	case !e.Ok() && readErr == nil:
		run.Error = withReason(fmt.Sprintf("the child ended after its report: %v", e), stderr)
	case !e.Ok():
		run.Error = withReason(fmt.Sprintf("the child ended before the end of its report: %v", e), stderr)
	case readErr != nil:
		run.Error = withReason(fmt.Sprintf("the child ended with %v: %v", e, readErr), stderr)
	default:
		run.Verb, run.Outcome = "", state.OutcomeOK
		if run.Error = text.OneLine(failure(run), maxError); run.Error != "" {
			run.Outcome = state.OutcomeFailed
		}
	}
}

func withReason(problem string, stderr child.Stderr) string {
	return text.OneLine(text.JoinWords(": ", problem, stderr.Reason()), maxError)
}

// maxFailures is how many failures the error of a run names.
const maxFailures = 3

// failure describes what failed in a finished run. Empty means nothing. A violated contract
// is a result of a run, not a failure.
func failure(run *state.Run) string {
	if run.Error != "" {
		return run.Error
	}
	var all []string
	for _, p := range run.Probes {
		if p.Status != state.StatusFailed {
			continue
		}
		if len(p.Failures) == 0 {
			all = append(all, p.Name+": failed")
		}
		for _, f := range p.Failures {
			all = append(all, text.JoinWords(": ", p.Name, failureText(f)))
		}
	}
	for _, u := range run.Undestroyed {
		all = append(all, fmt.Sprintf("%s: not destroyed: %s after %d attempts", u.Type, u.Errno, u.Attempts))
	}
	text := strings.Join(all[:min(len(all), maxFailures)], "; ")
	if more := len(all) - maxFailures; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func failureText(f state.Failure) string {
	parts := []string{text.OneLine(f.Subject.String(), 64)}
	// A message usually names its verb and errno.
	for _, word := range []string{f.Verb, f.Errno} {
		if !strings.Contains(f.Message, word) {
			parts = append(parts, word)
		}
	}
	return text.JoinWords(": ", append(parts, text.OneLine(f.Message, 200))...)
}
