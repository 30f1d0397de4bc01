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

// addCQ adds the size of a CQ that was asked for n entries.
func (c *compared) addCQ(n int, q verbs.CQ) {
	c.add(breaches(false, size{name: "cqe", asked: int64(n), given: int64(q.Entries())}), "%d→%d", n, q.Entries())
}

// conclude notes the observation: the wrong sizes if there are any, and otherwise all. With
// no sizes it stops the check with the last error.
func (c *compared) conclude(j *check, what string) {
	switch {
	case len(c.wrong) > 0:
		j.note(c.breaches, "%s; %d of %d wrong; %s: %s", c.breaches[0].text, len(c.wrong), len(c.texts), what, strings.Join(c.wrong, ", "))
	case len(c.texts) > 0:
		j.observe(true, "%s: %s", what, strings.Join(c.texts, ", "))
	default:
		session.Stop(c.last)
	}
}

func cqAtLeastRequested(j *check) {
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
		c.addCQ(n, q)
		session.Stop(cannot("destroy a CQ", q.Close()))
	}
	c.conclude(j, "asked→given")
}

func cqCompVectorAccepted(j *check) {
	n := j.Device.CompletionVectors()
	if n <= 0 {
		session.Stop(notSupported("the device says num_comp_vectors %d", n))
	}
	j.describe(fmt.Sprintf("ibv_create_cq with comp_vector %s (num_comp_vectors %d)", session.Join(j.Vectors), n), "each CQ is created")
	ch := session.Must(j.CompChannel())
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
		if refusal := j.mustSucceed(fmt.Sprintf("a CQ on vector %d", v), create(v), create(j.Vectors...)); refusal != nil {
			refused = append(refused, fmt.Sprintf("%d: %s", v, short(refusal)))
		}
	}
	if len(refused) > 0 {
		j.observe(false, "%d of %d vectors were refused: %s", len(refused), len(j.Vectors), strings.Join(refused[:min(len(refused), 8)], ", "))
	} else {
		j.observe(true, "%d vectors accepted", len(j.Vectors))
	}
}

func cqCompVectorRejected(j *check) {
	n := j.Device.CompletionVectors()
	j.describe(fmt.Sprintf("ibv_create_cq with comp_vector -1 and %d (num_comp_vectors)", n), "both fail")
	for _, v := range []int{-1, n} {
		create := func() error {
			_, err := j.CQ(verbs.CQInitAttr{Entries: smallCQ, Vector: v})
			return err
		}
		// What fails with a good vector, too, proves nothing.
		j.observeRefused(fmt.Sprintf("comp_vector %d", v), create, j.plainCQ)
	}
}

func cqDestroyBusy(j *check) {
	j.describe("ibv_destroy_cq of the send CQ and of the receive CQ, both with a channel, of a QP that exists",
		"both fail; afterwards the QP can be asked for its state, a CQ can be armed, a work request completes with an event, and all four can be destroyed")
	session.Must(j.PD())
	var ch verbs.CompChannel
	if err := session.Catch(func() { ch = j.notifies() }); err != nil {
		j.remark("without a channel, for no event comes at any time: %v", err)
	}
	send, recv := j.cq(ch, 0), j.cq(ch, 0)
	qp := j.qp(j.sources.qpType, send, recv, nil, true)
	query := func() error { _, err := qp.Query(); return err }
	before := j.refused(query)
	j.observeRefused("ibv_destroy_cq of the send CQ", send.Close, j.plainCQ)
	j.observeRefused("ibv_destroy_cq of the receive CQ", recv.Close, j.plainCQ)
	if j.violated {
		return // nothing of it may be used
	}
	j.stillWorks(verbs.QueryQP, before, query)
	if j.stillCompletes(qp, recv, ch); j.violated {
		return
	}
	j.observeWorks(verbs.DestroyQP, qp.Close)
	j.observeWorks(verbs.DestroyCQ, send.Close)
	j.observeWorks(verbs.DestroyCQ, recv.Close)
	if ch != nil {
		j.observeWorks(verbs.DestroyCompChannel, ch.Close)
	}
}

// notifies returns a channel if the device raises an event for a flushed receive. Otherwise
// it stops with the reason.
func (j *check) notifies() verbs.CompChannel {
	if j.sources.noReceives != nil {
		session.Stop(j.noFlushes())
	}
	// A missing feature is not a device failure.
	j.Tolerating(func() {
		j.isolated(func() {
			n := j.notified()
			c := j.flusher(n.cq, session.FlushRecv, session.FlushDepth)
			n.arm(false)
			if !j.completes(c, false, n, true) {
				session.Stop(fmt.Errorf("%s: no event within %v", session.FlushRecv, eventTimeout))
			}
		})
	})
	return session.Must(j.CompChannel())
}

// stillWorks is observeWorks if the verb worked before. Not every device has each verb.
func (j *check) stillWorks(verb verbs.Verb, before error, call func() error) {
	if before != nil {
		j.remark("%s does not work at any time: %s", verb, short(before))
		return
	}
	j.observeWorks(verb, call)
}

// observeWorks records whether a verb works that must work afterwards. A failure counts only
// if it repeats, and ends the check.
func (j *check) observeWorks(verb verbs.Verb, call func() error) {
	j.presume("afterwards "+string(verb), false)
	err := j.refused(call)
	if err != nil {
		err = j.refused(call)
	}
	switch {
	case err == nil:
		j.observe(true, "afterwards %s works", verb)
	case isCircumstance(err):
		session.Stop(cannot("afterwards", err))
	default:
		j.observeConvention(false, "afterwards %s: %s", verb, short(err))
		session.End()
	}
}

// stillCompletes records whether a QP in RESET can still complete a receive, and whether an
// event comes if its CQs have a channel. It needs a device that flushes receives.
func (j *check) stillCompletes(qp verbs.QP, recv verbs.CQ, ch verbs.CompChannel) {
	if j.sources.noReceives != nil {
		j.remark("no receive is flushed here, so that none could be tried")
		return
	}
	data := j.sge()
	if ch != nil {
		j.observeWorks(verbs.ReqNotifyCQ, func() error { return recv.ReqNotify(false) })
	}
	// It worked for another QP a moment ago.
	j.presume("completing a work request of the QP afterwards", false)
	const what = "a receive in the error state"
	session.Stop(cannot("produce "+what, j.FlushRecv(qp, verbs.RecvWR{ID: 1, SGEs: data})))
	came := false
	if ch != nil {
		_, came = j.event(ch, eventTimeout)
	}
	wcs, err := j.await(recv, 1)
	if isCircumstance(err) {
		session.Stop(cannot("afterwards", err))
	}
	if err != nil {
		j.observeConvention(false, "afterwards %s left no completion: %v", what, err)
		return
	}
	j.observe(true, "afterwards %s completed with %s", what, wcs[0].Status)
	if ch == nil {
		return
	}
	if !came {
		// The completion may have come only now, on a host that stood still.
		_, came = j.event(ch, silenceWindow)
	}
	j.observeConvention(came, "afterwards, armed: %s", eventText(came, true))
}
