package contract

import (
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/probe/known"
	"rdma_exporter/verbs"
)

func cqModerationNotifies(j *judge) error {
	attr, err := j.Device.QueryExtended()
	if err != nil {
		return cannot("query the device", err)
	}
	most := attr.Moderation
	if most == (verbs.Moderation{}) {
		return notSupported("the device does not moderate CQs: cq_mod_caps are 0")
	}
	on, off := verbs.Moderation{Count: min(most.Count, 4), Period: min(most.Period, 16)}, verbs.Moderation{}
	j.asks(fmt.Sprintf("ibv_modify_cq with cq_count %d and cq_period %d (at most %d and %d), and with 0 and 0; a completion of the armed CQ after each",
		on.Count, on.Period, most.Count, most.Period), "both are accepted, and an event comes for each completion")
	n, c, err := j.begin()
	if err != nil {
		return err
	}
	completes := func() (bool, error) {
		if err := n.arm(false); err != nil {
			return false, err
		}
		return j.completesWithEvent(c, true, n.cq, n.ch)
	}
	// What raises no event anyway proves nothing.
	came, err := completes()
	if err != nil {
		return err
	}
	if !came {
		return fmt.Errorf("not moderated: no event within %v", patience)
	}
	for _, step := range []struct {
		what        string
		to, instead verbs.Moderation
	}{{"moderated", on, off}, {"set back to 0", off, on}} {
		moderate := func(m verbs.Moderation) func() error { return func() error { return n.cq.Moderate(m) } }
		refusal, err := j.insists(step.what, moderate(step.to), moderate(step.instead))
		if err != nil {
			return err
		}
		if refusal != nil {
			j.seeIn(known.WayRefused, false, "%s: %s", step.what, short(refusal))
			return nil
		}
		if came, err = completes(); err != nil {
			return err
		}
		j.seeEvent(came, true, step.what)
	}
	if m, ok := c.(messages); ok && !j.violated {
		// What it costs decides nothing, and neither does that it cannot be measured.
		if err := j.refused(func() error { return j.moderatedLatency(n, m, on) }); err != nil {
			j.remark("what it does to the latency was not measured: %s", short(err))
		}
	}
	return nil
}

// moderationSamples is how many events are measured with and without moderation: enough for
// a median, within a millisecond or two.
const moderationSamples = 15

// moderatedLatency notes how long the event of a message takes without moderation and with.
func (j *judge) moderatedLatency(n notified, m messages, on verbs.Moderation) error {
	var medians []time.Duration
	for _, to := range []verbs.Moderation{{}, on} {
		if err := n.cq.Moderate(to); err != nil {
			return err
		}
		found, err := j.Device.Measure(verbs.Measurement{
			Sender: m.from, Send: verbs.SendWR{Flags: verbs.SendSignaled, SGEs: m.data},
			Receiver: m.to, Recv: verbs.RecvWR{SGEs: m.data},
			CQ: n.cq, Other: m.other, Channel: n.ch, Status: verbs.WCSuccess,
			Warmup: 1, Samples: moderationSamples, Deadline: quiet, Budget: quiet,
		})
		if err != nil {
			return err
		}
		if len(found.Latency) < moderationSamples/2 {
			return fmt.Errorf("%d of %d events came in time", len(found.Latency), moderationSamples)
		}
		slices.Sort(found.Latency)
		medians = append(medians, found.Latency[len(found.Latency)/2].Round(10*time.Nanosecond))
	}
	j.remark("the event of a message comes after %v without moderation, and after %v moderated by %d completions and %d µs (medians)",
		medians[0], medians[1], on.Count, on.Period)
	return nil
}
