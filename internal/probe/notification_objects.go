package probe

import (
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

const (
	// messageSize is the length of a message, in bytes.
	messageSize = 8
	// depth is the length of the queues. One message is in flight at a time.
	depth = 4
)

// objects creates what a trial needs, for itself alone: memory for a message, CQs on the
// measured vector, and a QP that flushes or two that are connected. If events are measured
// there are a channel and a second one with a CQ like the first, where a misdirected event
// would show.
func (n *notification) objects(t *trial, m measurement) (err error) {
	o, scope := &t.o, t.scope
	t.final = true
	pd, err := n.PD()
	if err != nil {
		return err
	}
	if m.mode != state.ModePoll {
		if o.Channel, err = scope.CompChannel(); err != nil {
			return err
		}
		if o.Bystander, err = scope.CompChannel(); err != nil {
			return err
		}
		if _, err = scope.CQ(m.cq(o.Bystander)); err != nil {
			return err
		}
	}
	if o.CQ, err = scope.CQ(m.cq(o.Channel)); err != nil {
		return err
	}
	o.Send = verbs.SendWR{Flags: verbs.SendSignaled}
	if o.Send.SGEs, o.Recv.SGEs, err = n.message(scope, pd); err != nil {
		return err
	}
	if m.path == state.PathFlush {
		err = n.flushing(t)
		t.final = err != nil && !session.IsRefused(err)
	} else {
		err = n.connected(t, m, pd)
	}
	if m.mode == state.ModeSolicited {
		o.SolicitedOnly = true
		o.Send.Flags |= verbs.SendSolicited
	}
	return err
}

func (n *notification) flushing(t *trial) error {
	t.o.Status = verbs.WCWRFlushErr
	f, err := t.scope.Flushing(t.flush, t.o.CQ, t.o.CQ, t.o.Send.SGEs, session.FlushDepth)
	if err != nil {
		return err
	}
	t.port = f.Port
	if t.flush == session.FlushRecv {
		init := f.Init()
		t.o.Receiver, t.o.Recv, t.o.Init = f.QP, f.Recv, &init
	} else {
		t.o.Sender, t.o.Send = f.QP, f.Send
	}
	return nil
}

func (n *notification) connected(t *trial, m measurement, pd verbs.PD) (err error) {
	o := &t.o
	// The sender's completion must not be taken for that of the receipt.
	if o.Other, err = t.scope.CQ(m.cq(nil)); err != nil {
		return err
	}
	if o.Sender, err = t.scope.QP(pd, qpFor(o.Other, o.Other)); err != nil {
		return err
	}
	if o.Receiver, err = t.scope.QP(pd, qpFor(o.Other, o.CQ)); err != nil {
		return err
	}
	t.final = false
	return session.Connect(o.Sender, o.Receiver, t.route)
}

// message returns the memory of a message at both ends. A process that may not pin memory
// sends empty messages, which is reported once.
func (n *notification) message(scope *session.Scope, pd verbs.PD) (send, recv []verbs.SGE, err error) {
	if n.empty {
		return nil, nil, nil
	}
	memory, err := scope.MR(pd, 2*messageSize, verbs.AccessLocalWrite)
	switch {
	case session.MayNotPin(err):
		n.empty = true
		errno, _ := verbs.ErrnoOf(err)
		limit := n.memlock(verbs.RegMR, errno)
		n.skip(state.Subject{Object: "message"}, state.SkipNotPermitted, "the messages that are measured are empty: %v%s", err, n.memlockHint(limit))
		n.Skips[len(n.Skips)-1].Memlock = limit
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	return []verbs.SGE{memory.SGE(0, messageSize)}, []verbs.SGE{memory.SGE(messageSize, messageSize)}, nil
}

func (m measurement) cq(ch verbs.CompChannel) verbs.CQInitAttr {
	return verbs.CQInitAttr{Entries: 2 * depth, Channel: ch, Vector: m.vector}
}

func qpFor(send, recv verbs.CQ) verbs.QPInitAttr {
	return verbs.QPInitAttr{
		Type: verbs.RC, SendCQ: send, RecvCQ: recv,
		Cap: verbs.QPCap{MaxSendWR: depth, MaxRecvWR: depth, MaxSendSGE: 1, MaxRecvSGE: 1},
	}
}
