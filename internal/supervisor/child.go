package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// maxError is the most bytes of a run's error.
const maxError = 1024

// task is what one child is to do.
type task struct {
	device  string
	kind    state.Kind
	timeout time.Duration
	command func() Command
}

// result is what came of one child.
type result struct {
	// run is the finished run; nil if it was given up.
	run *state.Run
	// stderr is what is kept of the child's standard error.
	stderr string
	// left is the child if it was killed and has not ended; nil otherwise.
	left process
	// killed is when left was killed, and verb the verb that it is in.
	killed time.Time
	verb   string
	// cut is what is known of a run that was given up because the time of all was up.
	cut *state.Run
	// died tells that the child crashed in a verb, or hung in one: what the verb did
	// was its end, not what somebody else did to the child.
	died bool
}

// hangTime is how long a child must not have been heard of, while in a verb, for it
// to count as hanging there.
const hangTime = time.Second

// budgetHangTime is the same for a child that was killed because the time of all was up,
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
	// endedItself: the child ended by itself.
	endedItself ending = iota
	// endedTimeout: it was killed at its deadline.
	endedTimeout
	// endedGarbage: it was killed for what it wrote.
	endedGarbage
	// endedGivenUp: it was killed because nobody wants the run any more.
	endedGivenUp
)

// runChild runs one child to its end, or to the moment at which it is given up.
// It takes no longer than the timeout, the grace after a kill, and the graces for
// the pipe. If ctx is done it kills the child.
func (s *Supervisor) runChild(ctx context.Context, t task) result {
	run := &state.Run{Kind: t.kind, Device: t.device, Started: time.Now()}
	p, err := s.start(ctx, t.command(), t.timeout)
	if errors.Is(err, errNotStarted) && ctx.Err() != nil {
		return result{} // It was given up, which says nothing of the device.
	} else if err != nil {
		run.Duration = time.Since(run.Started)
		run.Outcome, run.Error = state.OutcomeCrashed, oneLine(err.Error(), maxError)
		return result{run: run}
	}
	// The reader alone touches run until it has returned.
	read := make(chan error, 1)
	heard := &listener{Reader: p.output(), began: run.Started}
	go func() { read <- wire.Read(heard, run) }()

	why, hasRead, readErr := s.await(ctx, p, read, t.timeout)
	res := result{killed: time.Now()}
	if why != endedItself {
		p.kill()
		// That it is done may be known later than that it has ended, by the grace
		// for its pipes.
		if !within(s.patience(s.cfg.KillGrace+pipeGrace), p.done()) {
			res.left = p
		}
	}
	duration := time.Since(run.Started)
	if !hasRead {
		readErr = s.finishReading(p, read, res.left == nil)
	}
	_ = p.output().Close()

	run.Duration = duration
	stderr := p.stderr()
	res.stderr, res.verb = stderr.tail, run.Verb
	var e exit
	if res.left == nil {
		e = p.exit()
		run.CPU = e.cpu
	}
	if why == endedItself && unusable(readErr) {
		why = endedGarbage
	}
	if why == endedGivenUp && isBudget(ctx) {
		hangs := res.left != nil || run.Verb != "" && heard.silence(res.killed) >= budgetHangTime
		if !hangs {
			res.cut = run
			return res
		}
		why, t.timeout = endedTimeout, duration.Round(time.Second)
	}
	switch why {
	case endedGivenUp:
		return res
	case endedTimeout:
		run.Outcome, run.Error = state.OutcomeTimeout, timeoutError(run, t.timeout, res.left != nil)
		res.died = run.Verb != "" && heard.silence(res.killed) >= hangTime
	case endedGarbage:
		run.Outcome, run.Error = state.OutcomeCrashed, withReason("the child's output is no report: "+readErr.Error(), stderr)
	case endedItself:
		conclude(run, readErr, e, stderr)
		res.died = run.Outcome == state.OutcomeCrashed && run.Verb != "" && e.fault()
	}
	res.run = run
	return res
}

// errNotStarted: the program of the child could not be loaded in time.
var errNotStarted = errors.New("the child did not start in time")

// start starts a child. That reads its program's file, which can take for ever
// where the file's server is gone; so it waits no longer than for a whole run. A
// child that starts later is killed.
func (s *Supervisor) start(ctx context.Context, c Command, timeout time.Duration) (process, error) {
	type started struct {
		p   process
		err error
	}
	ch := make(chan started, 1)
	go func() {
		p, err := s.launch(c)
		ch <- started{p, err}
	}()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	select {
	case got := <-ch:
		return got.p, got.err
	case <-deadline.C:
	case <-ctx.Done():
		// Mostly the child is about to be there, and is then ended in order.
		select {
		case got := <-ch:
			return got.p, got.err
		case <-time.After(s.patience(s.cfg.KillGrace)):
		}
	}
	go func() {
		if got := <-ch; got.err == nil {
			got.p.kill()
			_ = got.p.output().Close()
		}
	}()
	return nil, errNotStarted
}

// await waits until the child has ended or has to be killed. It also tells
// whether the reader has returned, and with which error.
func (s *Supervisor) await(ctx context.Context, p process, read <-chan error, timeout time.Duration) (why ending, hasRead bool, readErr error) {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		select {
		case <-p.done():
			return endedItself, hasRead, readErr
		case readErr = <-read:
			hasRead = true
			if unusable(readErr) {
				return endedGarbage, true, readErr
			}
			// The child has closed its output, which is not yet its end.
			read = nil
		case <-deadline.C:
			select {
			case <-p.done():
				return endedItself, hasRead, readErr
			default:
				return endedTimeout, hasRead, readErr
			}
		case <-ctx.Done():
			return endedGivenUp, hasRead, readErr
		}
	}
}

// finishReading makes the reader return. If the child has ended, what it wrote
// is still to be read; that is soon done, unless a process that it left behind goes
// on writing, or nobody lets the reader run.
func (s *Supervisor) finishReading(p process, read <-chan error, ended bool) error {
	if ended {
		t := time.NewTimer(s.patience(readGrace))
		defer t.Stop()
		select {
		case err := <-read:
			return err
		case <-t.C:
		}
	}
	_ = p.output().Close()
	return <-read
}

// readGrace is how long the output of a child that has ended may take to be read.
const readGrace = 5 * time.Second

// within waits for done, for no longer than d, and reports whether it is. However long
// this process is not let run at a time, that counts for no more than a tenth of d: who
// is to see that it is done is held up, too.
func within(d time.Duration, done <-chan struct{}) bool {
	const parts = 10
	t := time.NewTimer(d / parts)
	defer t.Stop()
	for range parts {
		select {
		case <-done:
			return true
		case <-t.C:
			t.Reset(d / parts)
		}
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// unusable reports whether a reader's error means that what the child writes is
// no report, rather than that its report has no end.
func unusable(err error) bool { return err != nil && !errors.Is(err, wire.ErrTruncated) }

// conclude sums up the run of a child that ended by itself.
func conclude(run *state.Run, readErr error, e exit, stderr stderr) {
	switch {
	case !e.ok() && readErr == nil:
		run.Outcome = state.OutcomeCrashed
		run.Error = withReason(fmt.Sprintf("the child ended after its report: %v", e), stderr)
	case !e.ok():
		run.Outcome = state.OutcomeCrashed
		run.Error = withReason(fmt.Sprintf("the child ended before the end of its report: %v", e), stderr)
	case readErr != nil:
		run.Outcome = state.OutcomeCrashed
		run.Error = withReason(fmt.Sprintf("the child ended with %v: %v", e, readErr), stderr)
	default:
		run.Verb = ""
		run.Error = oneLine(failure(run), maxError)
		run.Outcome = state.OutcomeOK
		if run.Error != "" {
			run.Outcome = state.OutcomeFailed
		}
	}
}

func timeoutError(run *state.Run, timeout time.Duration, left bool) string {
	text := fmt.Sprintf("timed out after %v", timeout)
	if run.Verb != "" {
		text += " in " + run.Verb
	}
	if left {
		text += "; the child cannot be killed"
	}
	return text
}

func withReason(text string, stderr stderr) string {
	if reason := stderr.reason(); reason != "" {
		text += ": " + reason
	}
	return oneLine(text, maxError)
}

// maxFailures is how many failures the error of a run names.
const maxFailures = 3

// failure says what failed in a run that went to its end; empty for nothing. That
// a device violates a contract is what a run found, and no failure of the run.
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
			all = append(all, p.Name+": "+failureText(f))
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
	var parts []string
	if f.Subject != "" {
		parts = append(parts, oneLine(f.Subject, 64))
	}
	// A message mostly names its verb and errno.
	for _, word := range []string{f.Verb, f.Errno} {
		if word != "" && !strings.Contains(f.Message, word) {
			parts = append(parts, word)
		}
	}
	if f.Message != "" {
		parts = append(parts, oneLine(f.Message, 200))
	}
	return strings.Join(parts, ": ")
}
