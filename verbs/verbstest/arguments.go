package verbstest

import (
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

// arguments tests arguments that would make libibverbs crash.
func (s *suite) arguments(t *testing.T) {
	s.run(t, "QP without CQs", func(t *testing.T, d *device) {
		p := d.mustPD()
		c := d.mustCQ(4, nil, 0)
		for _, attr := range []verbs.QPInitAttr{{}, {SendCQ: c}, {RecvCQ: c}} {
			attr.Type, attr.Cap = verbs.RC, smallCap()
			wantErrno(t, "CreateQP", errorOf(p.CreateQP(attr)), syscall.EINVAL)
		}
	})
	s.run(t, "QP of no type", func(t *testing.T, d *device) {
		p := d.mustPD()
		c := d.mustCQ(4, nil, 0)
		for _, typ := range []verbs.QPType{0, -1, 99, 1 << 32} {
			_, err := p.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: c, RecvCQ: c, Cap: smallCap()})
			wantErrno(t, "CreateQP", err, syscall.EINVAL)
		}
	})
	for _, typ := range []verbs.QPType{verbs.UD, verbs.SRD} {
		s.datagramWithoutAddress(t, typ)
	}
}

func (s *suite) datagramWithoutAddress(t *testing.T, typ verbs.QPType) {
	s.run(t, "datagram without address "+typ.Label(), func(t *testing.T, d *device) {
		s.requireType(t, typ)
		p, c := d.mustPD(), d.mustCQ(16, nil, 0)
		m := p.mustMR(64)
		q := d.mustDatagramQP(typ, p, c, c)
		wr := verbs.SendWR{
			Flags: verbs.SendSignaled, SGEs: []verbs.SGE{m.SGE(0, 8)},
			RemoteQPN: q.raw.Number(), RemoteQKey: verbs.UDQKey,
		}
		wantErrno(t, "PostSend", q.PostSend(wr), syscall.EINVAL)
		c.mustBeEmpty()
		q.mustBe(verbs.RTS)
		q.mustModify(verbs.ToError())
		wantErrno(t, "PostSend in state ERR", q.PostSend(wr), syscall.EINVAL)
	})
}
