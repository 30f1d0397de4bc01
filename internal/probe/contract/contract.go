// Package contract holds a device to the libibverbs man pages: each promise that
// event-driven programs rely on is a check with a verdict and its evidence.
//
// Each check has objects of its own, so that no earlier arming and no leftover
// completion decides it. Every wait is bounded: for what should come by patience,
// for what should not come by quiet. What the device offers no way to find out
// is skipped, with the reason; it never counts as kept.
package contract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"rdma_exporter/internal/probe/known"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

// Options says which device to judge and where to report.
type Options struct {
	// Provider returns the provider of the devices. It is told the tracer through
	// which each verb is reported.
	Provider func(verbs.Tracer) verbs.Provider
	// Device is the name of the device.
	Device string
	// Driver is the driver of the device. What it is known for is not held against the
	// device.
	Driver known.Driver
	// Skip are names of contracts that are not to be judged, because an earlier
	// part of the contract run did.
	Skip []string
	// WithoutCompletions leaves out what needs completions, because an earlier part
	// of the contract run ended while it tried which of them the device gives.
	WithoutCompletions bool
	// Vectors says on which completion vectors there may be CQs.
	Vectors session.Vectors
	// DestroyTimeout bounds the time spent on repeating refused destructions, all
	// together.
	DestroyTimeout time.Duration
	// Opened, if not nil, is called once the device is open.
	Opened func()
	// Exhausted is that of [session.Options].
	Exhausted func(*verbs.Error) (state.Refused, bool)
	// Out takes the report.
	Out *wire.Writer
}

const (
	// patience is how long something is waited for that the manual has come. It is
	// far longer than any device takes, since a host may be busy.
	patience = 2 * time.Second
	// quiet is how long something is waited for that the manual has not come.
	quiet = 150 * time.Millisecond
)

// Run judges all contracts once and writes a whole report, which begins with what
// is to be judged and whose end tells if the device could not be judged at all. It returns an error only if the report
// could not be written or ctx ended; ctx is looked at between the contracts.
func Run(ctx context.Context, o Options) error {
	so := session.Options{
		Provider: o.Provider, Device: o.Device, Vectors: o.Vectors,
		DestroyTimeout: o.DestroyTimeout, Opened: o.Opened, Exhausted: o.Exhausted, Out: o.Out,
	}
	return session.Run(ctx, so, func(ctx context.Context, s *session.Session) error {
		var plan []Contract
		var planned []state.Planned
		for _, c := range Catalogue() {
			if !slices.Contains(o.Skip, c.Name) {
				plan = append(plan, c)
				planned = append(planned, state.Planned{Name: c.Name, Severity: c.Severity})
			}
		}
		if len(plan) == 0 {
			return nil
		}
		_ = o.Out.Plan(planned)
		a := judging{Session: s, driver: o.Driver}
		if o.WithoutCompletions {
			a.ways = noWays()
		} else {
			a.survey()
		}
		for _, c := range plan {
			if err := errors.Join(ctx.Err(), o.Out.Err()); err != nil {
				return err
			}
			_ = o.Out.Judging(c.Name)
			_ = o.Out.Contract(a.judge(c))
		}
		return nil
	})
}

// contract run is what the judgements have in common.
type judging struct {
	*session.Session
	driver known.Driver
	ways   ways
}

// judge judges one contract.
func (a *judging) judge(c Contract) state.Contract {
	j := &judge{judging: a, Scope: a.Scope(), contract: c}
	start := time.Now()
	err := c.judge(j)
	j.left = append(j.left, j.Close())
	v := state.Contract{
		Name: c.Name, Severity: c.Severity, Verdict: state.VerdictHolds,
		Asked: j.asked, Expected: j.expected, Duration: time.Since(start),
	}
	notes := j.notes
	switch {
	case j.violated:
		v.Verdict, v.Consequence, v.Remedy = state.VerdictViolated, c.Consequence, cmp.Or(j.remedy, c.Remedy)
		tell(&v, j.fact, j.unexpected)
	case !j.judged || err != nil:
		// Half a proof that the contract is kept is none; half a proof of the
		// contrary is enough.
		v.Verdict, v.Reason = state.VerdictSkipped, state.SkipNeeds
		if o := session.ObstacleOf(err); o != nil {
			v.Reason = o.Reason
		}
	default:
		if facts := a.driver.Of(c.Name); len(facts) > 0 {
			tell(&v, &facts[0], false)
		}
	}
	if err != nil {
		notes = append(notes, "not judged further: "+err.Error())
	}
	if left := errors.Join(j.left...); left != nil {
		notes = append(notes, "left behind: "+strings.ReplaceAll(left.Error(), "\n", "; "))
	}
	v.Observed = j.observed(notes)
	return v
}

// judge is one judgement under way: what was created for it, and what was seen.
type judge struct {
	*judging
	*session.Scope
	contract Contract

	asked, expected  string
	notes            []string
	judged, violated bool
	// gist is the first observation that is not as the manual has it.
	gist string
	// fact is what the driver is known for, of what was seen of a violation, and
	// unexpected tells that it is not known for all of that.
	fact       *known.Fact
	unexpected bool
	// remedy is what to do about the violation that was seen; empty for what the
	// catalogue says.
	remedy string
	// left are the errors of objects that could not be destroyed.
	left []error
}

// apart calls f, whose objects are destroyed after it: of two observations in one
// judgement, neither decides the other.
func (j *judge) apart(f func() error) error {
	outer := j.Scope
	j.Scope = j.judging.Scope()
	err := f()
	j.left = append(j.left, j.Close())
	j.Scope = outer
	return err
}

// asks says in words what is done and what the manual has follow.
func (j *judge) asks(asked, expected string) { j.asked, j.expected = asked, expected }

// see notes an observation on which the verdict rests: ok if it is as the manual
// has it.
func (j *judge) see(ok bool, format string, args ...any) { j.seeIn("", ok, format, args...) }

// seeIn is see, with the way in which the contract is broken if the observation is
// not ok: one that known.Fact tells apart.
func (j *judge) seeIn(way string, ok bool, format string, args ...any) {
	var breaches []breach
	if !ok {
		breaches = []breach{{way: way}}
	}
	j.note(breaches, format, args...)
}

// breach is one way in which a contract is broken, and, if it is a size, by how much that
// is less than was asked for, and what it is in words.
type breach struct {
	way  string
	less int64
	text string
}

// note notes an observation on which the verdict rests; without breaches it is as the
// manual has it.
func (j *judge) note(breaches []breach, format string, args ...any) {
	j.judged = true
	for _, b := range breaches {
		j.violated = true
		if fact, ok := j.driver.Explains(j.contract.Name, b.way, b.less); !ok {
			j.unexpected = true
		} else if j.fact == nil {
			j.fact = &fact
		}
	}
	j.remark(format, args...)
	if len(breaches) > 0 {
		j.gist = cmp.Or(j.gist, j.notes[len(j.notes)-1])
		// To clean up after a driver that breaks a promise may be the end of the
		// process.
		v := j.violation()
		tell(&v, j.fact, j.unexpected)
		_ = j.Out.Presume(state.Presumption{Contract: v, Proven: true})
	}
}

// tell adds to a verdict that the driver is known for it, unless it is not for all of
// it.
func tell(v *state.Contract, fact *known.Fact, unexpected bool) {
	if fact != nil && !unexpected {
		v.Known, v.Fact, v.Source = true, fact.What, fact.Source
	}
}

// presume reports the verdict that holds if the process dies of what follows, or
// hangs in it: the manual has it work, and a driver that breaks the promise of
// this contract may have freed what it touches. It is called anew before each
// such step.
func (j *judge) presume(step string) {
	if j.violated {
		return
	}
	v := j.violation(step + " was the end of the process")
	if fact, ok := j.driver.Explains(j.contract.Name, known.WayEnd, 0); ok {
		tell(&v, &fact, false)
	}
	_ = j.Out.Presume(state.Presumption{Contract: v})
}

// violation returns the verdict that the contract is violated, by what was seen
// so far and what comes on top.
func (j *judge) violation(more ...string) state.Contract {
	return state.Contract{
		Name: j.contract.Name, Severity: j.contract.Severity, Verdict: state.VerdictViolated,
		Asked: j.asked, Expected: j.expected, Observed: j.observed(slices.Concat(j.notes, more)),
		Consequence: j.contract.Consequence, Remedy: cmp.Or(j.remedy, j.contract.Remedy),
	}
}

// observed joins what was noted, with the gist of a violation first.
func (j *judge) observed(notes []string) string {
	if j.gist != "" && j.gist != notes[0] {
		notes = slices.Concat([]string{j.gist}, notes)
	}
	return strings.Join(notes, "; ")
}

// remark notes an observation that decides nothing.
func (j *judge) remark(format string, args ...any) {
	j.notes = append(j.notes, fmt.Sprintf(format, args...))
}

// refused calls f, whose failure the manual demands, and returns its error.
func (j *judge) refused(f func() error) error {
	var err error
	j.Expecting(func(error) bool { return true }, func() { err = f() })
	return err
}

// seeRefused notes whether a call is refused, as the manual demands. Which errno it is
// proves nothing, for some drivers have one for everything: what does is that the
// control, which is the like of it and nothing that the manual forbids, succeeds. The
// error is why nothing can be said.
func (j *judge) seeRefused(what string, call, control func() error) error {
	err := j.refused(call)
	if err != nil {
		if err := j.refused(control); err != nil {
			return cannot(what+", and then a plain one", err)
		}
	}
	if isCircumstance(err) {
		// It may have been for a moment.
		err = j.refused(call)
	}
	if err == nil {
		j.seeIn(known.WayAccepted, false, "%s: it succeeded", what)
	} else {
		j.see(true, "%s: %s", what, short(err))
	}
	return nil
}

// plainCQ creates and destroys a CQ of which nothing is special.
func (j *judge) plainCQ() error {
	q, err := j.cq(nil, 0)
	if err != nil {
		return err
	}
	return q.Close()
}

// isCircumstance reports whether an error tells of the host or of a device that
// is gone, rather than of what the device makes of the manual.
func isCircumstance(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.ENOMEM, syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE, syscall.EIO, syscall.ENODEV, syscall.EINTR,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// insists calls what must succeed by the manual. A refusal is returned only if it
// repeats while the control, which is nothing special, succeeds: a host that is
// short of something for a moment, or at a limit, proves nothing. The second
// error is why nothing can be said.
func (j *judge) insists(what string, create, control func() error) (refusal, err error) {
	refusal = j.refused(create)
	if refusal == nil {
		return nil, nil
	}
	if err := j.refused(control); err != nil {
		return nil, cannot(what+", and then a plain one", err)
	}
	if refusal = j.refused(create); refusal == nil {
		j.remark("%s: refused at first", what)
	}
	if errors.Is(refusal, syscall.ENODEV) || errors.Is(refusal, os.ErrPermission) {
		return nil, cannot(what, refusal)
	}
	return refusal, nil
}

// short names an error by its errno, if it has one.
func short(err error) string {
	if errno, ok := verbs.ErrnoOf(err); ok {
		return verbs.ErrnoName(errno)
	}
	return err.Error()
}

// cannot is the error of a judgement that cannot go on.
func cannot(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }

// smallCQ is as many entries as the checks need of a CQ.
const smallCQ = 16

// cq creates a small CQ. The channel may be nil. Of some devices a CQ
// cannot be armed before there is a protection domain.
func (j *judge) cq(ch verbs.CompChannel, context uint64) (verbs.CQ, error) {
	if _, err := j.pd(); err != nil {
		return nil, err
	}
	q, err := j.CQ(verbs.CQInitAttr{Entries: smallCQ, Channel: ch, Context: context, Vector: j.Vectors[0]})
	if err != nil {
		return nil, cannot("create a CQ", err)
	}
	return q, nil
}

// channel creates a completion channel.
func (j *judge) channel() (verbs.CompChannel, error) {
	c, err := j.CompChannel()
	if err != nil {
		return nil, cannot("create a completion channel", err)
	}
	return c, nil
}

// pd returns the protection domain.
func (j *judge) pd() (verbs.PD, error) {
	p, err := j.PD()
	if err != nil {
		return nil, cannot("allocate a protection domain", err)
	}
	return p, nil
}

// sge returns a scatter/gather element of some bytes, or none if the process may
// not pin memory. Empty messages do as well, but not every driver takes them.
func (j *judge) sge(pd verbs.PD) ([]verbs.SGE, error) {
	const size = 8
	var m verbs.MR
	err := j.refused(func() (err error) {
		m, err = j.MR(pd, size, verbs.AccessLocalWrite)
		return err
	})
	switch {
	case session.MayNotPin(err):
		return nil, nil
	case err != nil:
		return nil, cannot("register memory", err)
	}
	return []verbs.SGE{m.SGE(0, size)}, nil
}

// smallQP are sizes with which a QP serves every check.
func smallQP() verbs.QPCap {
	return verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1}
}

// qp creates a small QP.
func (j *judge) qp(pd verbs.PD, t verbs.QPType, send, recv verbs.CQ, srq verbs.SRQ, signalAll bool) (verbs.QP, error) {
	q, err := j.QP(pd, verbs.QPInitAttr{Type: t, SendCQ: send, RecvCQ: recv, SRQ: srq, Cap: smallQP(), SignalAll: signalAll})
	if err != nil {
		if srq != nil {
			return nil, cannot(fmt.Sprintf("create a %s QP with an SRQ", t), err)
		}
		return nil, cannot(fmt.Sprintf("create a %s QP", t), err)
	}
	return q, nil
}

// srq creates a small SRQ.
func (j *judge) srq(pd verbs.PD) (verbs.SRQ, error) {
	if n := j.Attr.Limits.MaxSRQ; n <= 0 {
		return nil, &session.ObstacleError{Reason: state.SkipNotSupported, Detail: fmt.Sprintf("the device says max_srq %d", n)}
	}
	q, err := j.SRQ(pd, verbs.SRQAttr{MaxWR: 8, MaxSGE: 1})
	if err != nil {
		return nil, cannot("create an SRQ", err)
	}
	return q, nil
}

// shared creates what a QP with an SRQ needs.
func (j *judge) shared() (pd verbs.PD, srq verbs.SRQ, cq verbs.CQ, err error) {
	if pd, err = j.pd(); err != nil {
		return nil, nil, nil, err
	}
	if srq, err = j.srq(pd); err != nil {
		return nil, nil, nil, err
	}
	cq, err = j.cq(nil, 0)
	return pd, srq, cq, err
}
