package simulated

import (
	"maps"
	"slices"

	"rdma_exporter/verbs"
)

// Condition says which calls of its verb a fault is about: those of which all is
// true that it mentions.
type Condition struct {
	// QPTypes are the types that the QP may have.
	QPTypes []string `yaml:"qp_types,omitempty"`
	// States are the states that the QP may be in before the call, and To those
	// that it is to go to.
	States []string `yaml:"states,omitempty"`
	To     []string `yaml:"to,omitempty"`
	// BeenRTS is whether the QP has been in RTS since it was in RESET.
	BeenRTS *bool `yaml:"been_rts,omitempty"`
	// Channel is whether the CQ has a completion channel.
	Channel *bool `yaml:"channel,omitempty"`
	// Solicited is whether solicited completions are asked for.
	Solicited *bool `yaml:"solicited,omitempty"`
	// Ports and GIDs are the ports and the GID indices that are asked for, or by
	// which the QP is connected.
	Ports []int `yaml:"ports,omitempty"`
	GIDs  []int `yaml:"gids,omitempty"`
	// PD is whether the process has a protection domain.
	PD *bool `yaml:"pd,omitempty"`
	// BeenErr is whether the QP has been in ERR at any time.
	BeenErr *bool `yaml:"been_err,omitempty"`
	// DestroyRefused is whether the destruction of the CQ was refused before.
	DestroyRefused *bool `yaml:"destroy_refused,omitempty"`
	// Above is what the sizes are more than that a QP is asked to have, by the names
	// that they have in struct ibv_qp_cap; max_inline_data is also what a send carries,
	// and length is that of a memory region in bytes.
	Above map[string]int `yaml:"above,omitempty"`
}

// facts are what there is to know of a call. What does not apply is zero, and meets
// no condition.
type facts struct {
	typ       verbs.QPType
	state, to *verbs.QPState
	beenRTS   *bool
	beenErr   *bool
	channel   *bool
	refused   *bool
	solicited *bool
	port      int
	gid       *int
	pd        bool
	sizes     map[string]uint32
}

// capSizes returns the sizes of a QP by their names.
func capSizes(c verbs.QPCap) map[string]uint32 {
	return map[string]uint32{
		"max_send_wr": c.MaxSendWR, "max_recv_wr": c.MaxRecvWR, "max_send_sge": c.MaxSendSGE,
		"max_recv_sge": c.MaxRecvSGE, "max_inline_data": c.MaxInlineData,
	}
}

// clone returns a copy that shares nothing with c.
func (c Condition) clone() Condition {
	c.QPTypes, c.States, c.To = slices.Clone(c.QPTypes), slices.Clone(c.States), slices.Clone(c.To)
	c.Ports, c.GIDs = slices.Clone(c.Ports), slices.Clone(c.GIDs)
	for _, b := range []**bool{&c.BeenRTS, &c.BeenErr, &c.Channel, &c.DestroyRefused, &c.Solicited, &c.PD} {
		if *b != nil {
			is := **b
			*b = &is
		}
	}
	c.Above = maps.Clone(c.Above)
	return c
}

// holds tells whether the condition is met.
func (c *Condition) holds(f facts) bool {
	in := func(list []string, s *verbs.QPState) bool {
		return list == nil || s != nil && slices.Contains(list, s.String())
	}
	same := func(want, is *bool) bool { return want == nil || is != nil && *is == *want }
	for size, n := range c.Above {
		if is, ok := f.sizes[size]; !ok || uint64(is) <= uint64(n) {
			return false
		}
	}
	return (c.QPTypes == nil || slices.Contains(c.QPTypes, f.typ.String())) &&
		in(c.States, f.state) && in(c.To, f.to) && same(c.BeenRTS, f.beenRTS) &&
		same(c.BeenErr, f.beenErr) && same(c.DestroyRefused, f.refused) &&
		same(c.Channel, f.channel) && same(c.Solicited, f.solicited) && same(c.PD, &f.pd) &&
		(c.Ports == nil || slices.Contains(c.Ports, f.port)) &&
		(c.GIDs == nil || f.gid != nil && slices.Contains(c.GIDs, *f.gid))
}

// facts returns what there is to know of a call on the QP.
func (q *qp) facts() facts {
	state, beenRTS, beenErr := q.state, q.beenRTS, q.beenErr
	f := facts{typ: q.typ, state: &state, beenRTS: &beenRTS, beenErr: &beenErr, port: q.attr.Port}
	f.by(q.attr.AH)
	return f
}

// by notes an address.
func (f *facts) by(a verbs.AHAttr) {
	if a.Port > 0 {
		f.port = a.Port
	}
	if a.Global {
		f.gid = &a.SGIDIndex
	}
}

// facts returns what there is to know of a call on the CQ.
func (q *cq) facts() facts {
	has, refused := q.channel != nil, q.refused
	return facts{channel: &has, refused: &refused}
}

// asking returns what there is to know of arming the CQ.
func (q *cq) asking(solicitedOnly bool) facts {
	f := q.facts()
	f.solicited = &solicitedOnly
	return f
}

// sending returns what there is to know of posting a send.
func (q *qp) sending(w sendWork) facts {
	f := q.facts()
	solicited := w.wr.Flags&verbs.SendSolicited != 0
	f.solicited = &solicited
	if w.wr.Flags&verbs.SendInline != 0 {
		inline := uint32(0)
		for _, s := range w.wr.SGEs {
			inline += s.Length
		}
		f.sizes = map[string]uint32{"max_inline_data": inline}
	}
	f.by(w.to)
	return f
}
