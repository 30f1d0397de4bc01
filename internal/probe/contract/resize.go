package contract

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

// resize resizes a CQ, if the device does that. It does not try drivers on which a refusal
// leaves a CQ that crashes the process.
func (j *check) resize(q verbs.CQ, entries int) {
	if fact, ok := j.driver.Explains(j.contract.Name, errata.ModeEnd, 0); ok {
		session.Stop(notSupported("known of the driver, and so not tried: %s", fact.What))
	}
	err := j.refused(func() error { return q.Resize(entries) })
	if verbs.IsNotSupported(err) {
		session.Stop(notSupported("the device does not resize CQs: %v", err))
	}
	session.Stop(cannot(fmt.Sprintf("resize a CQ to %d", entries), err))
}

func cqResizeAtLeastRequested(j *check) {
	list := atMost(j.Attr.Limits.MaxCQE, 100, smallCQ+1, 33, 255, 256, 257, 20, 3)
	j.describe(fmt.Sprintf("ibv_resize_cq of a CQ of %d to %s, one after the other", smallCQ, session.Join(list)),
		"each time it has at least as many entries (cqe of the CQ)")
	q := j.cq(nil, 0)
	var c compared
	for _, n := range list {
		if err := session.Catch(func() { j.resize(q, n) }); err != nil {
			if len(c.texts) == 0 || session.ObstacleOf(err) != nil {
				session.Stop(err) // some resize without being asked, for they round alike
			}
			j.remark("%v", err)
			continue
		}
		c.addCQ(n, q)
	}
	if c.conclude(j, "asked→given"); j.violated {
		return
	}
	if err := session.Catch(func() { j.isolated(j.observeFilled) }); err != nil {
		j.remark("not filled: %v", err)
	}
}

// A resized CQ is filled with at least leastFilled completions, which take more than a
// page of memory, and at most mostFilled.
const (
	leastFilled = 256
	mostFilled  = 1024
)

// observeFilled records whether a resized CQ keeps as many completions as it was to have
// entries. A loss counts only if a CQ that was created with as many entries shows none.
func (j *check) observeFilled() {
	q := j.cq(nil, 0)
	n := max(leastFilled, 2*q.Entries())
	if most := j.Attr.Limits.MaxCQE; n > mostFilled || most > 0 && n > most || n > j.Attr.Limits.MaxQPWR {
		session.Stop(notSupported("that takes %d entries, and a QP of as many work requests", n))
	}
	j.resize(q, n)
	got := j.keeps(q, n)
	if got < n {
		if kept := j.keeps(session.Must(j.CQ(verbs.CQInitAttr{Entries: n, Vector: j.Vectors[0]})), n); kept < n {
			session.Stop(fmt.Errorf("%d of %d completions are polled, even if the CQ is created with as many entries", kept, n))
		}
	}
	j.observe(got == n, "to %d, and filled: %d completions are polled", n, got)
}

// keeps leaves n completions in a CQ before it polls them, and returns how many there are.
func (j *check) keeps(q verbs.CQ, n int) int {
	if len(j.sources.flushes) == 0 {
		session.Stop(j.noFlushes())
	}
	j.Tolerating(func() { j.flusher(q, j.sources.flushes[0], n).flush(n) })
	time.Sleep(silenceWindow) // All completions come before the first is polled.
	// A CQ that overruns may refuse to be polled.
	wcs, _ := attempt(j, func() ([]verbs.WC, error) { return j.await(q, n) })
	return len(wcs)
}

// waiting is the number of completions in a CQ before it is resized, and following the number
// after each resizing. Together they must fit into the queue pair of a completer.
const (
	waiting   = 2
	following = 1
)

// fillCQ leaves completions in a CQ, and waits for a time after it caused the last.
func (j *check) fillCQ(q verbs.CQ, ago time.Duration) completer {
	c := j.best(q)
	for range waiting {
		c.complete(false)
	}
	time.Sleep(ago)
	return c
}

func cqResizeTooSmallRefused(j *check) {
	j.describe(fmt.Sprintf("ibv_resize_cq to 1 of a CQ with %d completions in it", waiting), fmt.Sprintf("it fails, or the CQ has room for %d all the same", waiting))
	accepted := func(ago time.Duration) (is bool) {
		j.isolated(func() {
			q := j.cq(nil, 0)
			j.resize(q, 2*smallCQ) // A device that does not resize at all proves nothing.
			j.fillCQ(q, ago)
			refusal := j.refused(func() error { return q.Resize(1) })
			if isCircumstance(refusal) {
				session.Stop(cannot("resize a CQ to 1", refusal))
			}
			switch n := q.Entries(); {
			case refusal != nil:
				j.observe(true, "to 1: %s", short(refusal))
			case n >= waiting:
				j.observe(true, "to 1: it succeeded, and there is room for %d", n)
			default:
				is = true
			}
		})
		return is
	}
	// On a host that stood still the completions may not have been there the first time.
	if accepted(silenceWindow) && accepted(eventTimeout) {
		j.observeMode(errata.ModeAccepted, false, "to 1: it succeeded with %d completions in it", waiting)
	}
}

func cqResizeKeepsCompletions(j *check) {
	const larger, smaller = 4 * smallCQ, smallCQ
	j.describe(fmt.Sprintf("a CQ of %d with %d completions in it, ibv_resize_cq to %d, a completion more, ibv_resize_cq to %d, another",
		smallCQ, waiting, larger, smaller), "all of them are polled, each once, in the order of their work requests")
	want := upTo(waiting + 2*following)
	// polled returns the completions of a CQ that is resized, or not.
	polled := func(resize bool) (ids []uint64) {
		j.isolated(func() {
			q := j.cq(nil, 0)
			if resize { // whether the device does at all
				j.resize(q, 2*smallCQ)
			}
			c := j.fillCQ(q, silenceWindow)
			for _, entries := range []int{larger, smaller} {
				if resize {
					j.resize(q, entries)
				}
				for range following {
					c.complete(false)
				}
			}
			wcs, err := j.await(q, len(want))
			if !errors.Is(err, errNoCompletion) {
				session.Stop(err)
			}
			time.Sleep(silenceWindow)
			more, err := q.Poll(len(want))
			session.Stop(cannot("poll a CQ", err))
			for _, wc := range slices.Concat(wcs, more) {
				ids = append(ids, wc.ID)
			}
		})
		return ids
	}
	ids := polled(true)
	if slices.Equal(ids, want) {
		j.observe(true, "polled were %d completions, in order", len(ids))
		return
	}
	if same := polled(false); !slices.Equal(same, want) {
		session.Stop(fmt.Errorf("a CQ that kept its size had the completions of %v, too, instead of %v", same, want))
	}
	j.observe(false, "polled were the completions of %v, instead of %v; without resizing they are right", ids, want)
}
