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
func (n *notification) objects(t *trial, m measurement) error {
	o, scope := &t.o, t.scope
	t.final = true
	return session.Catch(func() {
		pd := session.Must(n.PD())
		if m.mode != state.ModePoll {
			o.Channel = session.Must(scope.CompChannel())
			o.Bystander = session.Must(scope.CompChannel())
			session.Must(scope.CQ(m.cq(o.Bystander)))
		}
		o.CQ = session.Must(scope.CQ(m.cq(o.Channel)))
		o.Send = verbs.SendWR{Flags: verbs.SendSignaled}
		o.Send.SGEs, o.Recv.SGEs = n.message(scope, pd)
		o.SolicitedOnly = m.mode == state.ModeSolicited
		if m.path == state.PathFlush {
			n.flushing(t)
		} else {
			n.connected(t, m, pd)
		}
		if o.SolicitedOnly {
			o.Send.Flags |= verbs.SendSolicited
		}
	})
}

func (n *notification) flushing(t *trial) {
	t.o.Status = verbs.WCWRFlushErr
	f, err := t.scope.Flushing(t.flush, t.o.CQ, t.o.CQ, t.o.Send.SGEs, session.FlushDepth)
	t.final = err != nil && !session.IsRefused(err)
	session.Stop(err)
	t.port = f.Port
	if t.flush == session.FlushRecv {
		init := f.Init()
		t.o.Receiver, t.o.Recv, t.o.Init = f.QP, f.Recv, &init
	} else {
		t.o.Sender, t.o.Send = f.QP, f.Send
	}
}

func (n *notification) connected(t *trial, m measurement, pd verbs.PD) {
	o := &t.o
	// The sender's completion must not be taken for that of the receipt.
	o.Other = session.Must(t.scope.CQ(m.cq(nil)))
	o.Sender = session.Must(t.scope.QP(pd, qpFor(o.Other, o.Other)))
	o.Receiver = session.Must(t.scope.QP(pd, qpFor(o.Other, o.CQ)))
	t.final = false
	session.Stop(session.Connect(o.Sender, o.Receiver, t.route))
}

// message returns the memory of a message at both ends. A process that may not pin memory
// sends empty messages, which is reported once.
func (n *notification) message(scope *session.Scope, pd verbs.PD) (send, recv []verbs.SGE) {
	if n.empty {
		return nil, nil
	}
	memory, err := scope.MR(pd, 2*messageSize, verbs.AccessLocalWrite)
	if session.MayNotPin(err) {
		n.empty = true
		errno, _ := verbs.ErrnoOf(err)
		limit := n.memlock(verbs.RegMR, errno)
		n.skip(state.Subject{Object: "message"}, state.SkipNotPermitted, "the messages that are measured are empty: %v%s", err, n.memlockHint(limit))
		n.Skips[len(n.Skips)-1].Memlock = limit
		return nil, nil
	}
	session.Stop(err)
	return []verbs.SGE{memory.SGE(0, messageSize)}, []verbs.SGE{memory.SGE(messageSize, messageSize)}
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
