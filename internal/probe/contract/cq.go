package contract

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

// atMost returns the sizes within a limit of the device. Zero or less means unknown.
func atMost(limit int, sizes ...int) []int {
	return slices.DeleteFunc(sizes, func(n int) bool { return limit > 0 && n > limit })
}

type size struct {
	name               string
	asked, given, told int64
}

// breaches returns the sizes that are less than was asked for, or, with query, that are told
// differently when queried.
func breaches(query bool, sizes ...size) []breach {
	var b []breach
	for _, s := range sizes {
		switch {
		case query && s.told != s.given:
			b = append(b, breach{mode: s.name, text: fmt.Sprintf("%s: %d asked, %d written back, %d queried", s.name, s.asked, s.given, s.told)})
		case !query && s.given < s.asked:
			b = append(b, breach{mode: s.name, less: s.asked - s.given, text: fmt.Sprintf("%s: %d asked, %d given", s.name, s.asked, s.given)})
		}
	}
	return b
}

// compared collects pairs of sizes for the evidence.
type compared struct {
	texts []string
	wrong []string
	// breaches are what is wrong with them.
	breaches []breach
	// last is the error of the last object that could not be created.
	last error
}

func (c *compared) add(breaches []breach, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.texts = append(c.texts, text)
	if len(breaches) > 0 {
		c.wrong = append(c.wrong, text)
		c.breaches = append(c.breaches, breaches...)
	}
}

// conclude notes the observation: the wrong sizes if there are any, and otherwise all. With
// no sizes it returns the last error.
func (c *compared) conclude(j *check, what string) error {
	switch {
	case len(c.wrong) > 0:
		j.note(c.breaches, "%s; %d of %d wrong; %s: %s", c.breaches[0].text, len(c.wrong), len(c.texts), what, strings.Join(c.wrong, ", "))
	case len(c.texts) > 0:
		j.observe(true, "%s: %s", what, strings.Join(c.texts, ", "))
	default:
		return c.last
	}
	return nil
}

func cqAtLeastRequested(j *check) error {
	// Rounding shows around powers of two.
	list := atMost(j.Attr.Limits.MaxCQE, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 100, 255, 256, 257, 1000)
	j.describe(fmt.Sprintf("ibv_create_cq with cqe %s", session.Join(list)), "each CQ has at least as many entries (cqe of the CQ)")
	var c compared
	for _, n := range list {
		q, err := j.CQ(verbs.CQInitAttr{Entries: n, Vector: j.Vectors[0]})
		if err != nil {
			c.last = cannot(fmt.Sprintf("create a CQ of %d", n), err)
			j.remark("%v", c.last)
			continue
		}
		c.add(breaches(false, size{name: "cqe", asked: int64(n), given: int64(q.Entries())}), "%d→%d", n, q.Entries())
		if err := q.Close(); err != nil {
			return cannot("destroy a CQ", err)
		}
	}
	return c.conclude(j, "asked→given")
}

func cqCompVectorAccepted(j *check) error {
	n := j.Device.CompletionVectors()
	if n <= 0 {
		return notSupported("the device says num_comp_vectors %d", n)
	}
	j.describe(fmt.Sprintf("ibv_create_cq with comp_vector %s (num_comp_vectors %d)", session.Join(j.Vectors), n), "each CQ is created")
	ch, err := j.CompChannel()
	if err != nil {
		return err
	}
	create := func(vectors ...int) func() error {
		return func() (err error) {
			for _, v := range vectors {
				if err = created(func() (verbs.CQ, error) {
					return j.CQ(verbs.CQInitAttr{Entries: smallCQ, Channel: ch, Vector: v})
				}); err == nil {
					return nil
				}
			}
			return err
		}
	}
	var refused []string
	for _, v := range j.Vectors {
		// A device that takes none of them does not refuse the vector.
		refusal, err := j.mustSucceed(fmt.Sprintf("a CQ on vector %d", v), create(v), create(j.Vectors...))
		if err != nil {
			return err
		}
		if refusal != nil {
			refused = append(refused, fmt.Sprintf("%d: %s", v, short(refusal)))
		}
	}
	if len(refused) > 0 {
		j.observe(false, "%d of %d vectors were refused: %s", len(refused), len(j.Vectors), strings.Join(refused[:min(len(refused), 8)], ", "))
		return nil
	}
	j.observe(true, "%d vectors accepted", len(j.Vectors))
	return nil
}

func cqCompVectorRejected(j *check) error {
	n := j.Device.CompletionVectors()
	j.describe(fmt.Sprintf("ibv_create_cq with comp_vector -1 and %d (num_comp_vectors)", n), "both fail")
	for _, v := range []int{-1, n} {
		create := func() error {
			_, err := j.CQ(verbs.CQInitAttr{Entries: smallCQ, Vector: v})
			return err
		}
		// What fails with a good vector, too, proves nothing.
		if err := j.observeRefused(fmt.Sprintf("comp_vector %d", v), create, j.plainCQ); err != nil {
			return err
		}
	}
	return nil
}

func cqDestroyBusy(j *check) error {
	j.describe("ibv_destroy_cq of the send CQ and of the receive CQ, both with a channel, of a QP that exists",
		"both fail; afterwards the QP can be asked for its state, a CQ can be armed, a work request completes with an event, and all four can be destroyed")
	pd, err := j.PD()
	if err != nil {
		return err
	}
	ch, err := j.notifies()
	if err != nil {
		j.remark("without a channel, for no event comes at any time: %v", err)
	}
	send, err := j.cq(ch, 0)
	if err != nil {
		return err
	}
	recv, err := j.cq(ch, 0)
	if err != nil {
		return err
	}
	qp, err := j.qp(pd, j.sources.qpType, send, recv, nil, true)
	if err != nil {
		return err
	}
	query := func() error { _, err := qp.Query(); return err }
	before := j.refused(query)
	for _, q := range []struct {
		of string
		cq verbs.CQ
	}{{"send CQ", send}, {"receive CQ", recv}} {
		if err := j.observeRefused("ibv_destroy_cq of the "+q.of, q.cq.Close, j.plainCQ); err != nil {
			return err
		}
	}
	if j.violated {
		return nil // nothing of it may be used
	}
	if ok, err := j.stillWorks(verbs.QueryQP, before, query); !ok {
		return err
	}
	if err := j.stillCompletes(pd, qp, recv, ch); err != nil || j.violated {
		return err
	}
	type step struct {
		verb    verbs.Verb
		destroy func() error
	}
	steps := []step{{verbs.DestroyQP, qp.Close}, {verbs.DestroyCQ, send.Close}, {verbs.DestroyCQ, recv.Close}}
	if ch != nil {
		steps = append(steps, step{verbs.DestroyCompChannel, ch.Close})
	}
	for _, s := range steps {
		if ok, err := j.observeWorks(s.verb, s.destroy); !ok {
			return err
		}
	}
	return nil
}

// notifies returns a channel if the device raises an event for a flushed receive. Otherwise
// the error says why it does not.
func (j *check) notifies() (verbs.CompChannel, error) {
	if j.sources.noReceives != nil {
		return nil, j.noFlushes()
	}
	var err error
	// A missing feature is not a device failure.
	j.Expecting(func(error) bool { return true }, func() {
		err = j.isolated(func() error {
			n, err := j.notified()
			if err != nil {
				return err
			}
			c, err := j.flusher(n.cq, session.FlushRecv, session.FlushDepth)
			if err != nil {
				return err
			}
			if err := n.arm(false); err != nil {
				return err
			}
			came, err := j.completes(c, false, n, true)
			if err == nil && !came {
				err = fmt.Errorf("%s: no event within %v", session.FlushRecv, eventTimeout)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return j.CompChannel()
}

// stillWorks is observeWorks if the verb worked before. Not every device has each verb.
func (j *check) stillWorks(verb verbs.Verb, before error, call func() error) (bool, error) {
	if before != nil {
		j.remark("%s does not work at any time: %s", verb, short(before))
		return true, nil
	}
	return j.observeWorks(verb, call)
}

// observeWorks records whether a verb works that must work afterwards. A failure counts only
// if it repeats. It reports whether the check can continue. If not, that is the violation, or
// the error says why.
func (j *check) observeWorks(verb verbs.Verb, call func() error) (bool, error) {
	j.presume("afterwards "+string(verb), false)
	err := j.refused(call)
	if err != nil {
		err = j.refused(call)
	}
	switch {
	case err == nil:
		j.observe(true, "afterwards %s works", verb)
		return true, nil
	case isCircumstance(err):
		return false, cannot("afterwards", err)
	default:
		j.observeConvention(false, "afterwards %s: %s", verb, short(err))
		return false, nil
	}
}

// stillCompletes records whether a QP in RESET can still complete a receive, and whether an
// event comes if its CQs have a channel. It needs a device that flushes receives.
func (j *check) stillCompletes(pd verbs.PD, qp verbs.QP, recv verbs.CQ, ch verbs.CompChannel) error {
	if j.sources.noReceives != nil {
		j.remark("no receive is flushed here, so that none could be tried")
		return nil
	}
	data, err := j.sge(pd)
	if err != nil {
		return err
	}
	if ch != nil {
		if ok, err := j.observeWorks(verbs.ReqNotifyCQ, func() error { return recv.ReqNotify(false) }); !ok {
			return err
		}
	}
	// It worked for another QP a moment ago.
	j.presume("completing a work request of the QP afterwards", false)
	const what = "a receive in the error state"
	if err := j.FlushRecv(qp, verbs.RecvWR{ID: 1, SGEs: data}); err != nil {
		return cannot("produce "+what, err)
	}
	came := false
	if ch != nil {
		if _, came, err = j.event(ch, eventTimeout); err != nil {
			return err
		}
	}
	wcs, err := j.await(recv, 1)
	if isCircumstance(err) {
		return cannot("afterwards", err)
	}
	if err != nil {
		j.observeConvention(false, "afterwards %s left no completion: %v", what, err)
		return nil
	}
	j.observe(true, "afterwards %s completed with %s", what, wcs[0].Status)
	if ch == nil {
		return nil
	}
	if !came {
		// The completion may have come only now, on a host that stood still.
		if _, came, err = j.event(ch, silenceWindow); err != nil {
			return err
		}
	}
	j.observeConvention(came, "afterwards, armed: %s", eventText(came, true))
	return nil
}
