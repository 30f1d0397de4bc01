package probe

import (
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// loan is what a measurement that ended cleanly leaves to the next one, which is the
// same except how completions are awaited: its objects, since to create them costs
// more than to measure.
type loan struct {
	measurement
	trial *trial
	// channel and bystander are those of the objects; nil without.
	channel, bystander verbs.CompChannel
}

// lend keeps the objects of a measurement for the next one, and tells whether it does.
func (n *notification) lend(m measurement, t *trial) bool {
	l := loan{m, t, t.o.Channel, t.o.Bystander}
	if before := n.loan; before != nil && before.trial == t {
		l.channel, l.bystander = before.channel, before.bystander
	}
	n.loan = nil
	if len(n.plan) == 0 {
		return false
	}
	next := n.plan[0]
	if next.way != m.way || next.vector != m.vector {
		return false
	}
	// A queue that is polled may be armed still: there are libraries that put off what
	// they are asked for until they are polled. Nobody takes the event.
	if next.mode != state.ModePoll && (l.channel == nil || m.mode == state.ModePoll) {
		return false
	}
	n.loan = &l
	return true
}

// borrow returns the objects that were left to a measurement, made ready for it; nil if
// there are none.
func (n *notification) borrow(m measurement) *trial {
	if n.loan == nil {
		return nil
	}
	t := n.loan.trial
	o := &t.o
	t.found, t.took, t.err, t.whatever = verbs.Samples{}, 0, nil, false
	o.Channel, o.Bystander = nil, nil
	if m.mode != state.ModePoll {
		o.Channel, o.Bystander = n.loan.channel, n.loan.bystander
	}
	o.SolicitedOnly = m.mode == state.ModeSolicited
	o.Send.Flags &^= verbs.SendSolicited
	if o.SolicitedOnly {
		o.Send.Flags |= verbs.SendSolicited
	}
	if o.Init != nil {
		t.err = o.Receiver.Modify(verbs.ToReset())
	}
	return t
}

// giveBack destroys what nobody borrowed, and tells whether it could.
func (n *notification) giveBack() bool {
	if n.loan == nil {
		return true
	}
	err := n.close(n.loan.measurement, n.loan.trial) // which notes the failure
	n.loan = nil
	return err == nil
}
