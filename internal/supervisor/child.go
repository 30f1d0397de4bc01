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

// maxError limits the error of a run, in bytes.
const maxError = 1024

// task is what one child is to do.
type task struct {
	device  string
	kind    state.Kind
	timeout time.Duration
	command func() Command
}

// result is the result of one child.
type result struct {
	// run is the finished run. Nil means that it was cancelled.
	run *state.Run
	// stderr is the end of the child's standard error.
	stderr string
	// left is the child if it was killed and has not ended. Nil otherwise.
	left process
	// killed is when left was killed, and verb the verb that it is in.
	killed time.Time
	verb   string
	// cut is the unfinished run, if it was cancelled because the time of all was up.
	cut *state.Run
	// died is true if the child crashed or hung in a verb, so that the verb was the cause.
	died bool
}

// hangTime is how long a child in a verb must be silent to count as hanging there.
const hangTime = time.Second

// budgetHangTime is hangTime for a child that was killed because the time of all was up. That
// can be at any moment.
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
	// endedGivenUp: it was killed because the run was cancelled.
	endedGivenUp
)

// runChild runs one child until it ends or is given up. It takes no longer than the timeout
// and the graces for a kill and for the pipes. If ctx is done, it kills the child.
func (s *Supervisor) runChild(ctx context.Context, t task) result {
	run := &state.Run{Kind: t.kind, Device: t.device, Started: time.Now()}
	out, in := io.Pipe()
	p, err := s.start(ctx, t.command(), in, t.timeout)
	if err != nil {
		_ = out.Close()
		if errors.Is(err, errNotStarted) && ctx.Err() != nil {
			return result{} // The run was cancelled, so the device is not at fault.
		}
		run.Duration = time.Since(run.Started)
		run.Outcome, run.Error = state.OutcomeCrashed, oneLine(err.Error(), maxError)
		return result{run: run}
	}
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
		p.kill()
		if !within(s.patience(s.cfg.KillGrace+pipeGrace), p.done()) {
			res.left = p
			_ = out.Close()
		}
	}
	duration := time.Since(run.Started)
	if !hasRead {
		readErr = <-read // All that an ended child wrote is there.
	}

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

// start starts a child, and waits for it no longer than for a whole run. To load the program
// can block forever, if the file's server is gone. A child that starts later is killed.
func (s *Supervisor) start(ctx context.Context, c Command, out io.WriteCloser, timeout time.Duration) (process, error) {
	type started struct {
		p   process
		err error
	}
	ch := make(chan started, 1)
	go func() {
		p, err := s.launch(c, out)
		ch <- started{p, err}
	}()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	select {
	case got := <-ch:
		return got.p, got.err
	case <-deadline.C:
	case <-ctx.Done():
		// Usually the child is about to be there, and is then ended in order.
		select {
		case got := <-ch:
			return got.p, got.err
		case <-time.After(s.patience(s.cfg.KillGrace)):
		}
	}
	go func() {
		if got := <-ch; got.err == nil {
			got.p.kill()
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

// within reports whether done is closed within d.
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
	if subject := f.Subject.String(); subject != "" {
		parts = append(parts, oneLine(subject, 64))
	}
	// A message usually names its verb and errno.
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
