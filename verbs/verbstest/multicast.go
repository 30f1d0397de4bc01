package verbstest

import (
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

// multicastGID returns a multicast group of link-local scope that nobody uses.
func multicastGID() verbs.GID { return verbs.GID{0: 0xff, 1: 0x12, 14: 0x77, 15: 0x01} }

// localGroup returns the group of all nodes of interface-local scope: Soft-RoCE receives what
// is sent to it, and the kernel lets nothing of it out.
func localGroup() verbs.GID { return verbs.GID{0: 0xff, 1: 0x01, 15: 0x01} }

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
	s.run(t, "deliver", func(t *testing.T, d *device) {
		s.requirePort(t)
		group := localGroup()
		a, lid := member(t, d)
		way := d.mustPath()
		table, err := d.GIDTable()
		if err != nil {
			t.Fatalf("GIDTable: %v", err)
		}
		at := slices.IndexFunc(table, func(e verbs.GIDEntry) bool { return e.Port == 1 && !netip.AddrFrom16(e.GID).Is4In6() })
		if at < 0 {
			t.Skipf("port 1 of %s has no GID that is an IPv6 address", d.device)
		}
		to := way.ah
		to.Global, to.DGID, to.SGIDIndex, to.HopLimit = true, group, table[at].Index, 1
		p := d.mustPD()
		ah, err := p.CreateAH(to)
		if err != nil {
			t.Fatalf("CreateAH(%+v): %v", to, err)
		}
		a.mustClose()
		m := p.mustMR(256)
		sent, got := d.mustCQ(16, nil, 0), [2]*cq{d.mustCQ(16, nil, 0), d.mustCQ(16, nil, 0)}
		from := d.mustDatagramQP(verbs.UD, p, sent, sent)
		send := func(size int) {
			t.Helper()
			wr := verbs.SendWR{Flags: verbs.SendSignaled, SGEs: []verbs.SGE{m.SGE(0, size)}, AH: ah, RemoteQPN: 0xffffff, RemoteQKey: verbs.UDQKey}
			if err := from.PostSend(wr); err != nil {
				t.Fatalf("PostSend: %v", err)
			}
			wantSent(t, from, sent.await(1)[0], 0)
		}
		var members [2]*qp
		for i := range members {
			members[i] = d.mustDatagramQP(verbs.UD, p, got[i], got[i])
			for range 4 {
				if err := members[i].PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{m.SGE(128, 128)}}); err != nil {
					t.Fatalf("PostRecv: %v", err)
				}
			}
			if err := members[i].AttachMulticast(group, lid); err != nil {
				t.Fatalf("AttachMulticast: %v", err)
			}
		}
		send(8)
		for i, c := range got {
			wantReceived(t, members[i], c.await(1)[0], 0, headers(verbs.UD)+8)
		}
		if err := members[0].DetachMulticast(group, lid); err != nil {
			t.Fatalf("DetachMulticast: %v", err)
		}
		send(16)
		wantReceived(t, members[1], got[1].await(1)[0], 0, headers(verbs.UD)+16)
		if err := members[1].DetachMulticast(group, lid); err != nil {
			t.Fatalf("DetachMulticast: %v", err)
		}
		if wcs, err := got[0].Poll(4); err != nil || len(wcs) > 0 {
			t.Errorf("detached: %+v, %v", wcs, err)
		}
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
