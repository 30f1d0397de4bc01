package verbstest

import (
	"testing"

	"rdma_exporter/verbs"
)

// xrc tests extended reliable connections, where the device says that it has them; else
// that it says so in the usual way.
func (s *suite) xrc(t *testing.T) {
	s.run(t, "create and close", func(t *testing.T, d *device) {
		attr, err := d.Query()
		if err != nil {
			t.Fatalf("Query: %v", err)
		}
		x, err := d.raw.OpenXRCD()
		if !attr.XRC {
			if err == nil {
				t.Fatalf("%s opened an XRC domain, though it says that it has none", d.device)
			}
			if !verbs.IsNotSupported(err) {
				t.Errorf("OpenXRCD: %v, which IsNotSupported does not hold of", err)
			}
			t.Skipf("%s has no XRC: %v", d.device, err)
		}
		if err != nil {
			t.Fatalf("OpenXRCD: %v", err)
		}
		p, c := d.mustPD(), d.mustCQ(16, nil, 0)
		_, err = x.CreateSRQ(nil, nil, verbs.SRQAttr{MaxWR: 1, MaxSGE: 1})
		wantError(t, "CreateSRQ without a PD and a CQ", err)
		q, err := x.CreateSRQ(p.raw, c.raw, verbs.SRQAttr{MaxWR: 4, MaxSGE: 1})
		if err != nil {
			t.Fatalf("CreateSRQ: %v", err)
		}
		recv, err := x.CreateRecvQP()
		if err != nil {
			t.Fatalf("CreateRecvQP: %v", err)
		}
		send, err := x.CreateSendQP(p.raw, c.raw, smallCap())
		if err != nil {
			t.Fatalf("CreateSendQP: %v", err)
		}
		if recv.Number() == send.Number() || send.Created().MaxSendWR == 0 {
			t.Errorf("QPs %d and %d, the latter of %+v", recv.Number(), send.Number(), send.Created())
		}
		// Whether the domain can be closed before is the device's affair.
		for _, o := range []interface{ Close() error }{send, recv, q, x, x} {
			if err := o.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		_, err = x.CreateRecvQP()
		wantClosed(t, "CreateRecvQP", err)
	})
}
