package contract

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/probe/known"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

// resize resizes a CQ. That the device does not resize is no failure of it. Where a refusal
// leaves a CQ behind that ends the process, it is not tried.
func (j *judge) resize(q verbs.CQ, entries int) error {
	if fact, ok := j.driver.Explains(j.contract.Name, known.WayEnd, 0); ok {
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

func cqResizeAtLeastRequested(j *judge) error {
	var list []int
	for _, n := range []int{100, smallCQ + 1, 33, 255, 256, 257, 20, 3} {
		if most := j.Attr.Limits.MaxCQE; most <= 0 || n <= most {
			list = append(list, n)
		}
	}
	j.asks(fmt.Sprintf("ibv_resize_cq of a CQ of %d to %s, one after the other", smallCQ, session.Join(list)),
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
		c.add(shortfalls(size{name: "cqe", asked: int64(n), given: int64(q.Entries())}), "%d→%d", n, q.Entries())
	}
	c.conclude(j, "asked→given")
	return nil
}

// waiting is how many completions are left in a CQ before it is resized, and following
// how many come after each resizing: all together no more than the queue pair of a
// completer has room for.
const (
	waiting   = 2
	following = 1
)

// fillCQ leaves completions in a CQ that nobody has polled, the last of which was brought
// about some time ago.
func (j *judge) fillCQ(q verbs.CQ, ago time.Duration) (completer, error) {
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

// completeMore brings about so many more completions.
func completeMore(c completer, n int) error {
	for range n {
		if err := c.complete(false); err != nil {
			return err
		}
	}
	return nil
}

func cqResizeTooSmallRefused(j *judge) error {
	j.asks(fmt.Sprintf("ibv_resize_cq to 1 of a CQ with %d completions in it", waiting), fmt.Sprintf("it fails, or the CQ has room for %d all the same", waiting))
	accepted := func(ago time.Duration) (is bool, err error) {
		err = j.apart(func() error {
			q, err := j.cq(nil, 0)
			if err != nil {
				return err
			}
			// Who does not resize at all proves nothing.
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
				j.see(true, "to 1: %s", short(refusal))
			case n >= waiting:
				j.see(true, "to 1: it succeeded, and there is room for %d", n)
			default:
				is = true
			}
			return nil
		})
		return is, err
	}
	is, err := accepted(quiet)
	if err != nil || !is {
		return err
	}
	// On a host that stood still the completions may not have been there yet.
	if is, err = accepted(patience); err == nil && is {
		j.seeIn(known.WayAccepted, false, "to 1: it succeeded with %d completions in it", waiting)
	}
	return err
}

func cqResizeKeepsCompletions(j *judge) error {
	const larger, smaller = 4 * smallCQ, smallCQ
	j.asks(fmt.Sprintf("a CQ of %d with %d completions in it, ibv_resize_cq to %d, a completion more, ibv_resize_cq to %d, another",
		smallCQ, waiting, larger, smaller), "all of them are polled, each once, in the order of their work requests")
	want := make([]uint64, waiting+2*following)
	for i := range want {
		want[i] = uint64(i) + 1
	}
	// polled returns what comes of a CQ that is resized, or not.
	polled := func(resize bool) (ids []uint64, err error) {
		err = j.apart(func() error {
			q, err := j.cq(nil, 0)
			if err != nil {
				return err
			}
			if resize { // whether the device does at all
				if err := j.resize(q, 2*smallCQ); err != nil {
					return err
				}
			}
			c, err := j.fillCQ(q, quiet)
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
			time.Sleep(quiet)
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
		j.see(true, "polled were %d completions, in order", len(ids))
		return nil
	}
	same, err := polled(false)
	if err != nil {
		return err
	}
	if !slices.Equal(same, want) {
		return fmt.Errorf("a CQ that kept its size had the completions of %v, too, instead of %v", same, want)
	}
	j.see(false, "polled were the completions of %v, instead of %v; without resizing they are right", ids, want)
	return nil
}
