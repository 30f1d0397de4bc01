package verbstest

import (
	"bytes"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/verbs"
)

// bandwidth tests what moves data from a QP to its peer.
func (s *suite) bandwidth(t *testing.T) {
	const size, n, far = 4096, 64, 1023 // far is a CPU and a node that no host has
	test := func(name string, f func(t *testing.T, d *device, q *qp, m *mr, r verbs.BandwidthRun)) {
		s.run(t, name, func(t *testing.T, d *device) {
			s.requireType(t, verbs.RC)
			s.requirePort(t)
			const remote = access | verbs.AccessRemoteWrite | verbs.AccessRemoteRead
			p, c, way := d.mustPD(), d.mustCQ(16, nil, 0), d.mustPath()
			m := must(p.RegMR(4*size, remote|verbs.AccessRelaxedOrdering, 0))(t, "RegMR on node 0")
			q := p.mustQP(verbs.RC, c, c)
			q.mustModify(verbs.ToInit(verbs.RC, 1, remote))
			q.mustModify(verbs.ToRTR(verbs.RC, verbs.Peer{AH: way.ah, QPN: q.raw.Number(), PathMTU: way.mtu}))
			q.mustModify(verbs.ToRTS(verbs.RC))
			fill(m.Bytes(), 1)
			r := verbs.BandwidthRun{
				QPs: []verbs.QP{q.raw}, CQ: c.raw, Local: m.SGE(0, 2*size), Remote: m.SGE(2*size, 2*size), Size: size, Window: 8, Batch: 2,
				Duration: soon, Drain: soon, Bytes: n * size, Stop: new(atomic.Int64),
			}
			if _, err := d.raw.Bandwidth(r); verbs.IsNotSupported(err) {
				t.Skip(err)
			}
			fill(m.Bytes(), 1)
			f(t, d, q, m, r)
		})
	}
	for name, read := range map[string]bool{"write": false, "read": true} {
		test(name, func(t *testing.T, d *device, _ *qp, m *mr, r verbs.BandwidthRun) {
			local, remote := bytes.Clone(m.Bytes()[:2*size]), bytes.Clone(m.Bytes()[2*size:])
			r.Read = read
			got := must(d.raw.Bandwidth(r))(t, "Bandwidth")
			if got.Messages != n || got.Elapsed <= 0 || got.Status != verbs.WCSuccess || got.Posting != 0 || got.Draining != 0 {
				t.Errorf("%+v", got)
			}
			if read {
				local = remote
			}
			if !s.cfg.Simulated && !bytes.Equal(m.Bytes(), append(bytes.Clone(local), local...)) {
				t.Error("the memory is not what was moved")
			}
		})
	}
	test("stopped", func(t *testing.T, d *device, _ *qp, _ *mr, r verbs.BandwidthRun) {
		r.Stop.Store(1)
		if got := must(d.raw.Bandwidth(r))(t, "Bandwidth"); got.Messages != 0 {
			t.Errorf("%+v", got)
		}
	})
	test("stopped in between", func(t *testing.T, d *device, _ *qp, _ *mr, r verbs.BandwidthRun) {
		const most = time.Minute
		r.Duration, r.Bytes = most, 1<<50
		stop := time.AfterFunc(100*time.Millisecond, func() { r.Stop.Store(1) })
		defer stop.Stop()
		if got := must(d.raw.Bandwidth(r))(t, "Bandwidth"); !s.cfg.Simulated && got.Elapsed >= most || got.Status != verbs.WCSuccess {
			t.Errorf("%+v", got)
		}
	})
	test("invalid", func(t *testing.T, d *device, q *qp, _ *mr, r verbs.BandwidthRun) {
		for _, change := range []func(*verbs.BandwidthRun){
			func(r *verbs.BandwidthRun) { r.QPs = nil },
			func(r *verbs.BandwidthRun) { r.CQ = nil },
			func(r *verbs.BandwidthRun) { r.Batch = 3 },
			func(r *verbs.BandwidthRun) { r.Size = 2*size + 1 },
			func(r *verbs.BandwidthRun) { r.Window = 2 * verbs.MaxBandwidthWindow },
			func(r *verbs.BandwidthRun) { r.Stop = nil },
		} {
			bad := r
			change(&bad)
			if _, err := d.raw.Bandwidth(bad); !s.cfg.Simulated {
				wantErrno(t, "Bandwidth", err, syscall.EINVAL)
			}
		}
		r.Remote.RKey ^= 1 << 8
		if got, err := d.raw.Bandwidth(r); !s.cfg.Simulated && (err != nil || got.Status == verbs.WCSuccess) {
			t.Errorf("with a wrong key: %+v, %v", got, err)
		}
		r.CPUs = []int{far}
		if _, err := d.raw.Bandwidth(r); !s.cfg.Simulated && !errors.Is(err, verbs.ErrNUMANode) {
			t.Errorf("on a CPU that does not exist: %v", err)
		}
		if _, err := d.mustPD().raw.RegMR(size, access, far); !s.cfg.Simulated && !errors.Is(err, verbs.ErrNUMANode) {
			t.Errorf("on a node that does not exist: %v", err)
		}
		r.CPUs = nil
		q.mustClose()
		if _, err := d.raw.Bandwidth(r); !s.cfg.Simulated {
			wantClosed(t, "Bandwidth", err)
		}
	})
}
