// Package contract checks a device against the libibverbs man pages. Each promise that
// event-driven programs rely on is a check with a verdict and its evidence.
//
// Each check has objects of its own, so that no earlier arming and no leftover completion
// decides it. Every wait is bounded, by eventTimeout or silenceWindow. A contract that cannot
// be checked is skipped with the reason. It never counts as kept.
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

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

// Options says which device to check and where to report.
type Options struct {
	session.Options
	// Driver is the driver of the device. A check ignores its known errors.
	Driver errata.Driver
	// Skip are names of contracts that an earlier part of the contract run has checked.
	Skip []string
	// WithoutCompletions leaves out what needs completions, because an earlier part of the
	// contract run died while it looked for those that the device produces.
	WithoutCompletions bool
}

const (
	// eventTimeout limits the wait for an event that the man page requires. It is far
	// longer than any device takes, since a host may be busy.
	eventTimeout = 2 * time.Second
	// silenceWindow is the wait for an event that must not come.
	silenceWindow = 150 * time.Millisecond
)

// Run checks all contracts once and writes a complete report. It returns an error only if
// the report could not be written or ctx ended. It looks at ctx between the contracts.
func Run(ctx context.Context, o Options) error {
	return session.Run(ctx, o.Options, func(ctx context.Context, s *session.Session) error {
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
		_ = o.Out.Send(wire.Line{Planned: planned})
		a := suite{Session: s, driver: o.Driver}
		if o.WithoutCompletions {
			a.sources = noSources()
		} else {
			a.survey()
		}
		for _, c := range plan {
			if err := errors.Join(ctx.Err(), o.Out.Err()); err != nil {
				return err
			}
			_ = o.Out.Send(wire.Line{InProgress: c.Name})
			_ = o.Out.Send(wire.Line{Contract: new(a.check(c))})
		}
		return nil
	})
}

// suite holds what the checks of one contract run share.
type suite struct {
	*session.Session
	driver  errata.Driver
	sources completionSources
}

func (a *suite) check(c Contract) state.Contract {
	j := &check{suite: a, Scope: a.Scope(), contract: c}
	start := time.Now()
	err := session.Catch(func() { c.check(j) })
	j.left = append(j.left, j.Close())
	v := state.Contract{
		Name: c.Name, Severity: c.Severity, Verdict: state.VerdictHolds,
		Asked: j.asked, Expected: j.expected, Duration: time.Since(start),
	}
	notes := j.notes
	switch {
	case j.violated:
		v.Verdict, v.Consequence, v.Remedy = state.VerdictViolated, c.Consequence, c.Remedy
		v.Severity = j.severity()
		tell(&v, j.fact, j.unexpected)
	case !j.checked || err != nil:
		// An incomplete check proves nothing, unless it has seen a violation.
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
		notes = append(notes, "not checked further: "+err.Error())
	}
	if left := errors.Join(j.left...); left != nil {
		notes = append(notes, "left behind: "+strings.ReplaceAll(left.Error(), "\n", "; "))
	}
	v.Observed = j.observed(notes)
	return v
}

// check is one check in progress.
type check struct {
	*suite
	*session.Scope
	contract Contract

	asked, expected   string
	notes             []string
	checked, violated bool
	// promise is true if the violation is not only of a convention.
	promise bool
	// summary is the first observation that contradicts the man page.
	summary string
	// fact is an erratum of the driver that explains a violation. unexpected is true if a part
	// of the violation has none.
	fact       *errata.Erratum
	unexpected bool
	// left are the errors of objects that could not be destroyed.
	left []error
}

// isolated calls f and then destroys its objects, so that two observations in one check
// do not affect each other.
func (j *check) isolated(f func()) {
	outer := j.Scope
	j.Scope = j.suite.Scope()
	defer func() {
		j.left = append(j.left, j.Close())
		j.Scope = outer
	}()
	f()
}

// describe records what is done and what the man page requires.
func (j *check) describe(asked, expected string) { j.asked, j.expected = asked, expected }

// observe records an observation that decides the verdict. It is ok if the man page
// requires it.
func (j *check) observe(ok bool, format string, args ...any) { j.observeMode("", ok, format, args...) }

// observeMode is observe with the mode in which the contract is broken if the observation
// is not ok. Modes are those that errata.Erratum distinguishes.
func (j *check) observeMode(mode string, ok bool, format string, args ...any) {
	j.noteBreach(ok, breach{mode: mode}, format, args...)
}

// observeConvention is observe for something that programs rely on and no man page promises.
// If nothing else of a contract is broken, it is violated at info.
func (j *check) observeConvention(ok bool, format string, args ...any) {
	j.noteBreach(ok, breach{convention: true}, format, args...)
}

func (j *check) noteBreach(ok bool, b breach, format string, args ...any) {
	breaches := []breach{b}
	if ok {
		breaches = nil
	}
	j.note(breaches, format, args...)
}

// breach is one way in which a contract is broken.
type breach struct {
	mode string
	// less and text are by how much a size is less than requested, and that in words.
	less int64
	text string
	// convention is true if no man page promises the contrary.
	convention bool
}

// note records an observation that decides the verdict. Without breaches it is ok.
func (j *check) note(breaches []breach, format string, args ...any) {
	j.checked = true
	for _, b := range breaches {
		j.violated = true
		j.promise = j.promise || !b.convention
		if fact, ok := j.driver.Explains(j.contract.Name, b.mode, b.less); !ok {
			j.unexpected = true
		} else if j.fact == nil {
			j.fact = &fact
		}
	}
	j.remark(format, args...)
	if len(breaches) > 0 {
		j.summary = cmp.Or(j.summary, j.notes[len(j.notes)-1])
		// Cleaning up after a driver that breaks a promise may end the process.
		v := j.violation()
		tell(&v, j.fact, j.unexpected)
		_ = j.Out.Send(wire.Line{Provisional: &state.ProvisionalVerdict{Contract: v, Proven: true}})
	}
}

// tell adds the erratum of the driver to a verdict, unless it does not explain all of it.
func tell(v *state.Contract, fact *errata.Erratum, unexpected bool) {
	if fact != nil && !unexpected {
		v.Known, v.Fact, v.Source = true, fact.What, fact.Source
	}
}

// presume reports the verdict that holds if the process dies of what follows, or hangs in
// it. A driver that breaks this contract may have freed what the step touches. It is called
// before each such step. The step must work by convention, unless promised is set.
func (j *check) presume(step string, promised bool) {
	if j.violated {
		return
	}
	j.promise = promised
	v := j.violation(step + " was the end of the process")
	j.promise = false
	if fact, ok := j.driver.Explains(j.contract.Name, errata.ModeEnd, 0); ok {
		tell(&v, &fact, false)
	}
	_ = j.Out.Send(wire.Line{Provisional: &state.ProvisionalVerdict{Contract: v}})
}

// violation returns the verdict that the contract is violated, with further notes.
func (j *check) violation(more ...string) state.Contract {
	return state.Contract{
		Name: j.contract.Name, Severity: j.severity(), Verdict: state.VerdictViolated,
		Asked: j.asked, Expected: j.expected, Observed: j.observed(slices.Concat(j.notes, more)),
		Consequence: j.contract.Consequence, Remedy: j.contract.Remedy,
	}
}

func (j *check) severity() state.Severity {
	if j.promise {
		return j.contract.Severity
	}
	return state.SeverityInfo
}

func (j *check) observed(notes []string) string {
	if j.summary != "" && j.summary != notes[0] {
		notes = slices.Concat([]string{j.summary}, notes)
	}
	return strings.Join(notes, "; ")
}

// remark notes an observation that decides nothing.
func (j *check) remark(format string, args ...any) {
	j.notes = append(j.notes, fmt.Sprintf(format, args...))
}

// refused calls f, which may fail, and returns its error.
func (j *check) refused(f func() error) (err error) {
	j.Tolerating(func() { err = f() })
	return err
}

// attempt is refused for a function with a result.
func attempt[T any](j *check, f func() (T, error)) (v T, err error) {
	j.Tolerating(func() { v, err = f() })
	return v, err
}

// observeRefused records whether a call is refused, as the man page requires. The errno proves
// nothing, since some drivers have one for everything. The control, a similar call that the
// man page allows, must succeed, or the check stops.
func (j *check) observeRefused(what string, call, control func() error) {
	err := j.refused(call)
	if err != nil {
		session.Stop(cannot(what+", and then a plain one", j.refused(control)))
	}
	if isCircumstance(err) {
		// It may have been temporary.
		err = j.refused(call)
	}
	if err == nil {
		j.observeMode(errata.ModeAccepted, false, "%s: it succeeded", what)
	} else {
		j.observe(true, "%s: %s", what, short(err))
	}
}

// created creates an object and destroys it.
func created[T interface{ Close() error }](create func() (T, error)) error {
	o, err := create()
	if err != nil {
		return err
	}
	return o.Close()
}

func (j *check) plainCQ() error { return session.Catch(func() { session.Stop(j.cq(nil, 0).Close()) }) }

// isCircumstance reports whether an error is about the host, or about a device that is gone.
func isCircumstance(err error) bool {
	return slices.ContainsFunc([]syscall.Errno{
		syscall.ENOMEM, syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE, syscall.EIO, syscall.ENODEV, syscall.EINTR,
	}, func(errno syscall.Errno) bool { return errors.Is(err, errno) })
}

// mustSucceed calls what the man page requires to succeed. It returns a refusal only if that
// repeats while the control, a plain call, succeeds: a host may be short of something, or at
// a limit. Otherwise the check stops.
func (j *check) mustSucceed(what string, create, control func() error) (refusal error) {
	if refusal = j.refused(create); refusal == nil {
		return nil
	}
	session.Stop(cannot(what+", and then a plain one", j.refused(control)))
	if refusal = j.refused(create); refusal == nil {
		j.remark("%s: refused at first", what)
	}
	if errors.Is(refusal, syscall.ENODEV) || errors.Is(refusal, os.ErrPermission) {
		session.Stop(cannot(what, refusal))
	}
	return refusal
}

// short names an error by its errno, if it has one.
func short(err error) string {
	if errno, ok := verbs.ErrnoOf(err); ok {
		return verbs.ErrnoName(errno)
	}
	return err.Error()
}

// cannot adds to an error what failed. Nil stays nil.
func cannot(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

const smallCQ = 16

// cq creates a small CQ. The channel may be nil. On some devices a CQ cannot be armed before
// there is a protection domain.
func (j *check) cq(ch verbs.CompChannel, context uint64) verbs.CQ {
	session.Must(j.PD())
	q, err := j.CQ(verbs.CQInitAttr{Entries: smallCQ, Channel: ch, Context: context, Vector: j.Vectors[0]})
	return session.Must(q, cannot("create a CQ", err))
}

// sge returns a scatter/gather element of some bytes, or none if the process may not pin
// memory. Messages are then empty, which not every driver takes.
func (j *check) sge() []verbs.SGE {
	const size = 8
	pd := session.Must(j.PD())
	m, err := attempt(j, func() (verbs.MR, error) { return j.MR(pd, size, verbs.AccessLocalWrite) })
	if session.MayNotPin(err) {
		return nil
	}
	session.Stop(cannot("register memory", err))
	return []verbs.SGE{m.SGE(0, size)}
}

func smallQP() verbs.QPCap {
	return verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1}
}

func (j *check) qp(t verbs.QPType, send, recv verbs.CQ, srq verbs.SRQ, signalAll bool) verbs.QP {
	what := fmt.Sprintf("create a %s QP", t)
	if srq != nil {
		what += " with an SRQ"
	}
	q, err := j.QP(session.Must(j.PD()), verbs.QPInitAttr{Type: t, SendCQ: send, RecvCQ: recv, SRQ: srq, Cap: smallQP(), SignalAll: signalAll})
	return session.Must(q, cannot(what, err))
}

// needSRQs stops the check if the device has no SRQs.
func (j *check) needSRQs() {
	if n := j.Attr.Limits.MaxSRQ; n <= 0 {
		session.Stop(notSupported("the device says max_srq %d", n))
	}
}

func (j *check) srq() verbs.SRQ {
	pd := session.Must(j.PD())
	j.needSRQs()
	q, err := j.SRQ(pd, verbs.SRQAttr{MaxWR: 8, MaxSGE: 1})
	return session.Must(q, cannot("create an SRQ", err))
}
