package verbstest

import (
	"bytes"
	"testing"

	"rdma_exporter/verbs"
)

// headers are the bytes before the data of a datagram, for its global route header.
func headers(typ verbs.QPType) int {
	if typ == verbs.UD {
		return 40
	}
	return 0
}

// mustDatagramQP creates a QP of datagrams that is ready to send.
func (d *device) mustDatagramQP(typ verbs.QPType, p *pd, send, recv *cq) *qp {
	d.b.t.Helper()
	q := p.mustQP(typ, send, recv)
	q.mustModify(verbs.ToInit(typ, 1, 0))
	q.mustModify(verbs.ToRTR(typ, verbs.Peer{}))
	q.mustModify(verbs.ToRTS(typ))
	return q
}

// datagram tests datagrams between two QPs on one port.
func (s *suite) datagram(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.UD, verbs.SRD} {
		t.Run(typ.String(), func(t *testing.T) { s.datagramSend(t, typ) })
	}
}

func (s *suite) datagramSend(t *testing.T, typ verbs.QPType) {
	s.run(t, "send", func(t *testing.T, d *device) {
		s.requireType(t, typ)
		s.requirePort(t)
		before := headers(typ)
		p, way := d.mustPD(), d.mustPath()
		send, recv := d.mustCQ(16, nil, 0), d.mustCQ(16, nil, 0)
		from, to := d.mustDatagramQP(typ, p, send, send), d.mustDatagramQP(typ, p, recv, recv)
		src, dst := p.mustMR(4096), p.mustMR(8192)
		a := must(p.CreateAH(way.ah))(t, "CreateAH(%+v)", way.ah)
		for i, size := range []int{1, 8, 100, way.mtu} {
			id := uint64(i) + 1<<33
			fill(src.Bytes()[:size], byte(size))
			clear(dst.Bytes())
			wantNoError(t, "PostRecv", to.PostRecv(verbs.RecvWR{ID: id, SGEs: []verbs.SGE{dst.SGE(0, 8192)}}))
			wr := verbs.SendWR{
				ID: ^id, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{src.SGE(0, size)},
				AH: a, RemoteQPN: to.raw.Number(), RemoteQKey: verbs.UDQKey,
			}
			wantNoError(t, "PostSend", from.PostSend(wr))
			wantSent(t, from, send.await(1)[0], ^id)
			wc := recv.await(1)[0]
			wantReceived(t, to, wc, id, before+size)
			if wc.SrcQP != from.raw.Number() {
				t.Errorf("SrcQP = %d, want %d", wc.SrcQP, from.raw.Number())
			}
			if !bytes.Equal(dst.Bytes()[before:before+size], src.Bytes()[:size]) {
				t.Errorf("%d bytes did not arrive as they were sent", size)
			}
		}
	})
}
