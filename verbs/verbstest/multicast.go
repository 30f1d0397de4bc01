package verbstest

import (
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

// multicastGID returns a multicast group of link-local scope that nobody uses.
func multicastGID() verbs.GID { return verbs.GID{0: 0xff, 1: 0x12, 14: 0x77, 15: 0x01} }

// multicastLID is a LID of multicast groups, which matters on InfiniBand only.
const multicastLID = 0xc001

// multicast tests joining UD QPs to multicast groups.
func (s *suite) multicast(t *testing.T) {
	member := func(t *testing.T, d *device) (*qp, uint16) {
		t.Helper()
		s.requireType(t, verbs.UD)
		if attr, err := d.Query(); err != nil {
			t.Fatalf("Query: %v", err)
		} else if attr.Limits.MaxMcastGroup == 0 {
			t.Skipf("%s has no multicast (max_mcast_grp is 0)", d.device)
		}
		port, err := d.QueryPort(1)
		if err != nil {
			t.Fatalf("QueryPort(1): %v", err)
		}
		c := d.mustCQ(16, nil, 0)
		q := d.mustPD().mustQP(verbs.UD, c, c)
		q.mustModify(verbs.ToInit(verbs.UD, 1, 0))
		if port.LinkLayer == verbs.LinkInfiniBand {
			return q, multicastLID
		}
		return q, 0
	}
	s.run(t, "attach and detach", func(t *testing.T, d *device) {
		q, lid := member(t, d)
		for range 2 {
			if err := q.AttachMulticast(multicastGID(), lid); err != nil {
				t.Fatalf("AttachMulticast: %v", err)
			}
			if err := q.DetachMulticast(multicastGID(), lid); err != nil {
				t.Fatalf("DetachMulticast: %v", err)
			}
		}
		q.mustClose()
	})
	s.run(t, "detach without attach", func(t *testing.T, d *device) {
		q, lid := member(t, d)
		if err := q.DetachMulticast(multicastGID(), lid); err == nil {
			t.Log("the device detached what was not attached")
		}
		q.mustBe(verbs.Init)
	})
	s.run(t, "no multicast address", func(t *testing.T, d *device) {
		q, lid := member(t, d)
		wantError(t, "AttachMulticast to a unicast address", q.AttachMulticast(verbs.GID{0: 0x20, 1: 0x01, 15: 1}, lid))
		q.mustBe(verbs.Init)
	})
	s.run(t, "connected QP", func(t *testing.T, d *device) {
		_, lid := member(t, d)
		s.requireType(t, verbs.RC)
		c := d.mustCQ(16, nil, 0)
		q := d.mustPD().mustQP(verbs.RC, c, c)
		wantError(t, "AttachMulticast of an RC QP", q.AttachMulticast(multicastGID(), lid))
	})
	s.run(t, "close while attached", func(t *testing.T, d *device) {
		q, lid := member(t, d)
		if err := q.AttachMulticast(multicastGID(), lid); err != nil {
			t.Fatalf("AttachMulticast: %v", err)
		}
		err := q.Close()
		if err == nil {
			t.Log("the device destroyed a QP that is attached to a group")
			return
		}
		wantErrno(t, "Close", err, syscall.EBUSY)
		q.mustBe(verbs.Init)
		if err := q.DetachMulticast(multicastGID(), lid); err != nil {
			t.Errorf("DetachMulticast: %v", err)
		}
		q.mustClose()
	})
}
