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
func (j *check) resize(q verbs.CQ, entries int) error {
	if fact, ok := j.driver.Explains(j.contract.Name, errata.ModeEnd, 0); ok {
		return notSupported("known of the driver, and so not tried: %s", fact.What)
	}
	err := j.refused(func() error { return q.Resize(entries) })
	if verbs.IsNotSupported(err) {
		return notSupported("the device does not resize CQs: %v", err)
	}
	if err != nil {
		return cannot(fmt.Sprintf("resize a CQ to %d", entries), err)
	}
	return nil
}

func cqResizeAtLeastRequested(j *check) error {
	list := atMost(j.Attr.Limits.MaxCQE, 100, smallCQ+1, 33, 255, 256, 257, 20, 3)
	j.describe(fmt.Sprintf("ibv_resize_cq of a CQ of %d to %s, one after the other", smallCQ, session.Join(list)),
		"each time it has at least as many entries (cqe of the CQ)")
	q, err := j.cq(nil, 0)
	if err != nil {
		return err
	}
	var c compared
	for _, n := range list {
		if err := j.resize(q, n); err != nil {
			if len(c.texts) == 0 || session.ObstacleOf(err) != nil {
				return err // some resize without being asked, for they round alike
			}
			j.remark("%v", err)
			continue
		}
		c.add(breaches(false, size{name: "cqe", asked: int64(n), given: int64(q.Entries())}), "%d→%d", n, q.Entries())
	}
	if err := c.conclude(j, "asked→given"); err != nil || j.violated {
		return err
	}
	if err := j.isolated(j.observeFilled); err != nil {
		j.remark("not filled: %v", err)
	}
	return nil
}

// A resized CQ is filled with at least leastFilled completions, which take more than a
// page of memory, and at most mostFilled.
const (
	leastFilled = 256
	mostFilled  = 1024
)

// observeFilled records whether a resized CQ keeps as many completions as it was to have
// entries. A loss counts only if a CQ that was created with as many entries shows none.
func (j *check) observeFilled() error {
	q, err := j.cq(nil, 0)
	if err != nil {
		return err
	}
	n := max(leastFilled, 2*q.Entries())
	if most := j.Attr.Limits.MaxCQE; n > mostFilled || most > 0 && n > most || n > j.Attr.Limits.MaxQPWR {
		return notSupported("that takes %d entries, and a QP of as many work requests", n)
	}
	if err := j.resize(q, n); err != nil {
		return err
	}
	got, err := j.keeps(q, n)
	if err != nil {
		return err
	}
	if got < n {
		if q, err = j.CQ(verbs.CQInitAttr{Entries: n, Vector: j.Vectors[0]}); err != nil {
			return err
		}
		if kept, err := j.keeps(q, n); err != nil || kept < n {
			return errors.Join(err, fmt.Errorf("%d of %d completions are polled, even if the CQ is created with as many entries", kept, n))
		}
	}
	j.observe(got == n, "to %d, and filled: %d completions are polled", n, got)
	return nil
}

// keeps leaves n completions in a CQ before it polls them, and returns how many there are.
func (j *check) keeps(q verbs.CQ, n int) (int, error) {
	if len(j.sources.flushes) == 0 {
		return 0, j.noFlushes()
	}
	err := j.refused(func() error {
		f, err := j.flusher(q, j.sources.flushes[0], n)
		if err != nil {
			return err
		}
		return f.flush(n)
	})
	if err != nil {
		return 0, err
	}
	time.Sleep(silenceWindow) // All completions come before the first is polled.
	// A CQ that overruns may refuse to be polled.
	wcs, _ := attempt(j, func() ([]verbs.WC, error) { return j.await(q, n) })
	return len(wcs), nil
}

// waiting is the number of completions in a CQ before it is resized, and following the number
// after each resizing. Together they must fit into the queue pair of a completer.
const (
	waiting   = 2
	following = 1
)

// fillCQ leaves completions in a CQ, and waits for a time after it caused the last.
func (j *check) fillCQ(q verbs.CQ, ago time.Duration) (completer, error) {
	c, err := j.best(q)
	if err != nil {
		return nil, err
	}
	if err := completeMore(c, waiting); err != nil {
		return nil, err
	}
	time.Sleep(ago)
	return c, nil
}

func completeMore(c completer, n int) error {
	for range n {
		if err := c.complete(false); err != nil {
			return err
		}
	}
	return nil
}

func cqResizeTooSmallRefused(j *check) error {
	j.describe(fmt.Sprintf("ibv_resize_cq to 1 of a CQ with %d completions in it", waiting), fmt.Sprintf("it fails, or the CQ has room for %d all the same", waiting))
	accepted := func(ago time.Duration) (is bool, err error) {
		err = j.isolated(func() error {
			q, err := j.cq(nil, 0)
			if err != nil {
				return err
			}
			// A device that does not resize at all proves nothing.
			if err := j.resize(q, 2*smallCQ); err != nil {
				return err
			}
			if _, err := j.fillCQ(q, ago); err != nil {
				return err
			}
			refusal := j.refused(func() error { return q.Resize(1) })
			if isCircumstance(refusal) {
				return cannot("resize a CQ to 1", refusal)
			}
			switch n := q.Entries(); {
			case refusal != nil:
				j.observe(true, "to 1: %s", short(refusal))
			case n >= waiting:
				j.observe(true, "to 1: it succeeded, and there is room for %d", n)
			default:
				is = true
			}
			return nil
		})
		return is, err
	}
	is, err := accepted(silenceWindow)
	if err != nil || !is {
		return err
	}
	// On a host that stood still the completions may not have been there yet.
	if is, err = accepted(eventTimeout); err == nil && is {
		j.observeMode(errata.ModeAccepted, false, "to 1: it succeeded with %d completions in it", waiting)
	}
	return err
}

func cqResizeKeepsCompletions(j *check) error {
	const larger, smaller = 4 * smallCQ, smallCQ
	j.describe(fmt.Sprintf("a CQ of %d with %d completions in it, ibv_resize_cq to %d, a completion more, ibv_resize_cq to %d, another",
		smallCQ, waiting, larger, smaller), "all of them are polled, each once, in the order of their work requests")
	want := make([]uint64, waiting+2*following)
	for i := range want {
		want[i] = uint64(i) + 1
	}
	// polled returns the completions of a CQ that is resized, or not.
	polled := func(resize bool) (ids []uint64, err error) {
		err = j.isolated(func() error {
			q, err := j.cq(nil, 0)
			if err != nil {
				return err
			}
			if resize { // whether the device does at all
				if err := j.resize(q, 2*smallCQ); err != nil {
					return err
				}
			}
			c, err := j.fillCQ(q, silenceWindow)
			if err != nil {
				return err
			}
			for _, entries := range []int{larger, smaller} {
				if resize {
					if err := j.resize(q, entries); err != nil {
						return err
					}
				}
				if err := completeMore(c, following); err != nil {
					return err
				}
			}
			wcs, err := j.await(q, len(want))
			if err != nil && !errors.Is(err, errNoCompletion) {
				return err
			}
			time.Sleep(silenceWindow)
			more, err := q.Poll(len(want))
			if err != nil {
				return cannot("poll a CQ", err)
			}
			for _, wc := range slices.Concat(wcs, more) {
				ids = append(ids, wc.ID)
			}
			return nil
		})
		return ids, err
	}
	ids, err := polled(true)
	if err != nil {
		return err
	}
	if slices.Equal(ids, want) {
		j.observe(true, "polled were %d completions, in order", len(ids))
		return nil
	}
	same, err := polled(false)
	if err != nil {
		return err
	}
	if !slices.Equal(same, want) {
		return fmt.Errorf("a CQ that kept its size had the completions of %v, too, instead of %v", same, want)
	}
	j.observe(false, "polled were the completions of %v, instead of %v; without resizing they are right", ids, want)
	return nil
}
