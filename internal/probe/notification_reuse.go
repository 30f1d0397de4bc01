package probe

import (
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// keep keeps the objects of a clean measurement if the next one differs only in how
// completions are awaited, and reports whether it does. Creating them costs more than
// measuring. A queue that was polled is not kept, since it may still be armed.
func (n *notification) keep(m measurement, t *trial) bool {
	if len(n.plan) == 0 || m.mode == state.ModePoll || n.plan[0].method != m.method || n.plan[0].vector != m.vector {
		return false
	}
	n.kept, n.keptFor = t, m
	return true
}

// reuse returns the objects that were kept, prepared for a measurement. Nil means none.
func (n *notification) reuse(m measurement) *trial {
	t := n.kept
	if t == nil {
		return nil
	}
	n.kept = nil
	o := &t.o
	t.found, t.took = verbs.Samples{}, 0
	o.SolicitedOnly = m.mode == state.ModeSolicited
	o.Send.Flags &^= verbs.SendSolicited
	switch m.mode {
	case state.ModeSolicited:
		o.Send.Flags |= verbs.SendSolicited
	case state.ModePoll:
		o.Channel, o.Bystander = nil, nil
	}
	if o.Init != nil {
		t.err = o.Receiver.Modify(verbs.ToReset())
	}
	return t
}

// destroyKept reports whether no kept object is left.
func (n *notification) destroyKept() bool {
	if n.kept == nil {
		return true
	}
	err := n.close(n.keptFor, n.kept) // which notes the failure
	n.kept = nil
	return err == nil
}
