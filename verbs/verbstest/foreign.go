package verbstest

import (
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

// Objects of another implementation of package verbs. None of their methods may
// be called.
type (
	strangeChannel struct{ verbs.CompChannel }
	strangeCQ      struct{ verbs.CQ }
	strangeSRQ     struct{ verbs.SRQ }
	strangeAH      struct{ verbs.AH }
)

// foreign tests that objects of other devices and of other implementations are
// refused, before their addresses or numbers are taken for others.
func (s *suite) foreign(t *testing.T) {
	refused := func(t *testing.T, d *device, verb verbs.Verb, what string, try func() error) {
		t.Helper()
		mark := d.b.rec.mark()
		wantErrno(t, what, try(), syscall.EINVAL)
		if n := len(d.b.rec.since(mark, verb)); n > 0 {
			t.Errorf("%s: %s was called", what, verb)
		}
	}
	s.run(t, "channel", func(t *testing.T, d *device) {
		other := d.b.open(d.device)
		d.mustChannel()
		for what, ch := range map[string]verbs.CompChannel{
			"another device's channel":       other.mustChannel().raw,
			"a strange channel":              strangeChannel{},
			"a channel in disguise":          strangeChannel{d.mustChannel().raw},
			"a pointer to a strange one":     &strangeChannel{},
			"a nil pointer to a strange one": (*strangeChannel)(nil),
		} {
			refused(t, d, verbs.CreateCQ, what, func() error {
				return errorOf(d.CreateCQ(verbs.CQInitAttr{Entries: 4, Channel: ch}))
			})
		}
	})
	s.run(t, "CQ", func(t *testing.T, d *device) {
		other := d.b.open(d.device)
		p, own := d.mustPD(), d.mustCQ(4, nil, 0)
		for what, c := range map[string]verbs.CQ{
			"another device's CQ": other.mustCQ(4, nil, 0).raw,
			"a strange CQ":        strangeCQ{},
			"a CQ in disguise":    strangeCQ{own.raw},
		} {
			refused(t, d, verbs.CreateQP, what+" for sends", func() error {
				return errorOf(p.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: own, Cap: smallCap()}))
			})
			refused(t, d, verbs.CreateQP, what+" for receives", func() error {
				return errorOf(p.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: own, RecvCQ: c, Cap: smallCap()}))
			})
		}
		own.mustClose() // nothing holds it
	})
	s.run(t, "SRQ", func(t *testing.T, d *device) {
		other := d.b.open(d.device)
		p, c := d.mustPD(), d.mustCQ(4, nil, 0)
		attr := verbs.SRQAttr{MaxWR: 4, MaxSGE: 1}
		own := p.mustSRQ(attr)
		for what, q := range map[string]verbs.SRQ{
			"another device's SRQ": other.mustPD().mustSRQ(attr).raw,
			"a strange SRQ":        strangeSRQ{},
			"an SRQ in disguise":   strangeSRQ{own.raw},
		} {
			refused(t, d, verbs.CreateQP, what, func() error {
				return errorOf(p.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, SRQ: q, Cap: smallCap()}))
			})
		}
		own.mustClose() // nothing holds it
	})
	s.run(t, "AH", func(t *testing.T, d *device) {
		s.requireType(t, verbs.UD)
		s.requirePort(t)
		other := d.b.open(d.device)
		p, c := d.mustPD(), d.mustCQ(16, nil, 0)
		m := p.mustMR(64)
		way := d.mustPath()
		own := must(p.CreateAH(way.ah))(t, "CreateAH")
		others := must(other.mustPD().CreateAH(way.ah))(t, "CreateAH")
		q := d.mustDatagramQP(verbs.UD, p, c, c)
		for what, a := range map[string]verbs.AH{
			"another device's AH": others.raw,
			"a strange AH":        strangeAH{},
			"an AH in disguise":   strangeAH{own.raw},
		} {
			refused(t, d, verbs.PostSend, what, func() error {
				return q.PostSend(verbs.SendWR{
					Flags: verbs.SendSignaled, SGEs: []verbs.SGE{m.SGE(0, 8)},
					AH: a, RemoteQPN: q.raw.Number(), RemoteQKey: verbs.UDQKey,
				})
			})
		}
		c.mustBeEmpty()
	})
}
