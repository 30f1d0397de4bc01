package simulated_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// TestConditions: a fault with a condition acts on the calls that meet it, and
// counts no others.
func TestConditions(t *testing.T) {
	profile := func(faults string) *simulated.Profile {
		return must[*simulated.Profile](t)(simulated.ParseProfile([]byte("devices: [{name: dev, like: sim_ib0, default_latency: 0s, latency: {}, faults: [" + faults + "]}]")))
	}
	for _, tc := range []struct {
		name, fault string
		// want says which of the calls fail.
		want string
	}{
		{"type", "{verb: ibv_create_qp, when: {qp_types: [UC, UD]}, errno: no_errno}", "create UC: no_errno, create UD: no_errno"},
		{"type, once", "{verb: ibv_create_qp, when: {qp_types: [UD]}, times: 1, errno: EIO}", "create UD: EIO"},
		{"inline data", "{verb: ibv_create_qp, when: {qp_types: [UC, UD], above: {max_inline_data: 31}}, errno: no_errno}", "create UC: no_errno, create UD: no_errno"},
		{"less inline data", "{verb: ibv_create_qp, when: {above: {max_inline_data: 32}}, errno: no_errno}", ""},
		{"a size of a queue", "{verb: ibv_create_qp, when: {qp_types: [UC], above: {max_send_wr: 3, max_recv_wr: 3}}, errno: EIO}", "create UC: EIO"},
		{"one size alone", "{verb: ibv_create_qp, when: {above: {max_send_wr: 3, max_recv_wr: 64}}, errno: EIO}", ""},
		{"been in ERR", "{verb: ibv_post_recv, when: {been_err: true}, errno: EIO}", "second receive: EIO"},
		{"not been in ERR", "{verb: ibv_post_recv, when: {been_err: false}, errno: EIO}", "first receive: EIO"},
		{"refused", "{verb: ibv_poll_cq, when: {destroy_refused: true}, errno: EIO}", "poll after a refusal: EIO"},
		{"not refused", "{verb: ibv_poll_cq, when: {destroy_refused: false}, errno: EIO}", "poll: EIO"},
		{"states", "{verb: ibv_post_send, when: {states: [ERR]}, errno: EIO}", "send in ERR: EIO, send in ERR after RTS: EIO"},
		{"been in RTS", "{verb: ibv_post_send, when: {been_rts: false}, errno: ENOMEM}", "send in ERR: ENOMEM"},
		{"not been in RTS", "{verb: ibv_post_send, when: {been_rts: true}, errno: ENOMEM}", "send in ERR after RTS: ENOMEM"},
		{"to", "{verb: ibv_modify_qp, when: {to: [RTR]}, errno: EPERM}", "to RTR: EPERM"},
		{"channel", "{verb: ibv_create_cq, when: {channel: true}, errno: EOPNOTSUPP}", "CQ with a channel: EOPNOTSUPP"},
		{"no channel", "{verb: ibv_create_cq, when: {channel: false}, times: 1, errno: EOPNOTSUPP}", "CQ: EOPNOTSUPP"},
		{"solicited", "{verb: ibv_req_notify_cq, when: {solicited: true}, errno: EOPNOTSUPP}", "arm for solicited: EOPNOTSUPP"},
		{"no PD", "{verb: ibv_req_notify_cq, when: {pd: false}, errno: EFAULT}", "arm without a PD: EFAULT"},
		{"port", "{verb: ibv_query_port, when: {ports: [2, 3]}, errno: EIO}", "port 2: EIO"},
		{"partition key's port", "{verb: ibv_query_pkey, when: {ports: [1]}, errno: EIO}", "key of port 1: EIO"},
		{"GID", "{verb: ibv_create_ah, when: {gids: [0]}, errno: ENODEV}", "address by GID 0: ENODEV"},
		{"all of them", "{verb: ibv_post_send, when: {qp_types: [RC], states: [ERR], been_rts: true}, errno: EIO}", "send in ERR after RTS: EIO"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var failed []string
			try := func(what string, err error) {
				t.Helper()
				if err == nil {
					return
				}
				errno, _ := verbs.ErrnoOf(err)
				failed = append(failed, what+": "+verbs.ErrnoName(errno))
			}
			d := open(t, profile(tc.fault))
			cq := func(what string, attr verbs.CQInitAttr) verbs.CQ {
				attr.Entries = 16
				q, err := d.CreateCQ(attr)
				if err != nil {
					try(what, err)
					q = must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 16}))
				}
				return q
			}
			c := cq("CQ", verbs.CQInitAttr{})
			try("arm without a PD", c.ReqNotify(false))
			pd := must[verbs.PD](t)(d.AllocPD())
			cq("CQ with a channel", verbs.CQInitAttr{Channel: must[verbs.CompChannel](t)(d.CreateCompChannel())})
			try("arm", c.ReqNotify(false))
			try("arm for solicited", c.ReqNotify(true))
			for port := 1; port <= 2; port++ {
				_, err := d.QueryPort(port)
				try(fmt.Sprintf("port %d", port), err)
				_, err = d.PKey(port, 0)
				try(fmt.Sprintf("key of port %d", port), err)
			}
			gid := must[[]verbs.GIDEntry](t)(d.GIDTable())[0]
			_, err := pd.CreateAH(verbs.AHAttr{Port: 1, DLID: 7})
			try("address by LID", err)
			_, err = pd.CreateAH(verbs.AHAttr{Port: 1, DLID: 7, Global: true, DGID: gid.GID, SGIDIndex: gid.Index})
			try(fmt.Sprintf("address by GID %d", gid.Index), err)
			for _, typ := range []verbs.QPType{verbs.UC, verbs.UD} {
				_, err := pd.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: c, RecvCQ: c, Cap: qpCap})
				try("create "+typ.String(), err)
			}
			for _, ready := range []bool{false, true} {
				q := must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, Cap: qpCap}))
				ok(t, q.Modify(verbs.ToInit(verbs.RC, 1, 0)))
				what := "send in ERR"
				if ready {
					what += " after RTS"
					if err := q.Modify(verbs.ToRTR(verbs.RC, verbs.Peer{AH: verbs.AHAttr{Port: 1, DLID: 12}, QPN: q.Number(), PathMTU: 1024})); err != nil {
						try("to RTR", err)
						continue
					}
					ok(t, q.Modify(verbs.ToRTS(verbs.RC)))
				}
				ok(t, q.Modify(verbs.ToError()))
				try(what, q.PostSend(verbs.SendWR{}))
			}
			again := must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, Cap: qpCap}))
			for _, what := range []string{"first receive", "second receive"} {
				ok(t, again.Modify(verbs.QPAttr{State: verbs.Reset}, verbs.MaskState))
				ok(t, again.Modify(verbs.ToInit(verbs.RC, 1, 0)))
				try(what, again.PostRecv(verbs.RecvWR{}))
				ok(t, again.Modify(verbs.ToError()))
			}
			for _, what := range []string{"poll", "poll after a refusal"} {
				_, err := c.Poll(1)
				try(what, err)
				wantErrno(t, c.Close(), verbs.DestroyCQ, syscall.EBUSY)
			}
			if got := strings.Join(failed, ", "); got != tc.want {
				t.Errorf("failed: %s, want %s", got, tc.want)
			}
		})
	}
}

// TestIgnored: a verb that is ignored succeeds, and has no effect.
func TestIgnored(t *testing.T) {
	d := open(t, faulty(t,
		simulated.Fault{Verb: verbs.ReqNotifyCQ, Times: 1, Ignore: true},
		simulated.Fault{Verb: verbs.PostSend, Times: 1, Ignore: true},
		simulated.Fault{Verb: verbs.PostRecv, Times: 1, Ignore: true},
		simulated.Fault{Verb: verbs.ModifyQP, Times: 1, Ignore: true},
	))
	pd := must[verbs.PD](t)(d.AllocPD())
	ch := must[verbs.CompChannel](t)(d.CreateCompChannel())
	c := must[verbs.CQ](t)(d.CreateCQ(verbs.CQInitAttr{Entries: 16, Channel: ch}))
	q := must[verbs.QP](t)(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, Cap: qpCap}))
	for _, want := range []verbs.QPState{verbs.Reset, verbs.Err} {
		ok(t, q.Modify(verbs.ToError()))
		if got := must[verbs.QPQuery](t)(q.Query()).State; got != want {
			t.Errorf("the QP is in %s, want %s", got, want)
		}
	}
	for i, want := range []int{0, 2} {
		ok(t, c.ReqNotify(false))
		ok(t, q.PostSend(verbs.SendWR{}))
		ok(t, q.PostRecv(verbs.RecvWR{}))
		if got := len(must[[]verbs.WC](t)(c.Poll(4))); got != want {
			t.Errorf("round %d: %d completions, want %d", i, got, want)
		}
		if _, err := ch.GetEvent(moment); (err == nil) != (want > 0) {
			t.Errorf("round %d: event: %v", i, err)
		} else if err == nil {
			ok(t, c.AckEvents(1))
		}
	}
}

// TestPartitions: the keys are those of the profile, and limited members do not reach
// each other.
func TestPartitions(t *testing.T) {
	d := open(t, like(t, "sim_ib0", func(d *simulated.DeviceProfile) { d.Ports[0].PKeyTable = []uint16{0x7fff, 0, 0xffff} }))
	if p := must[verbs.PortAttr](t)(d.QueryPort(1)); p.PKeys < 3 {
		t.Errorf("%d keys", p.PKeys)
	}
	for index, want := range []verbs.PKey{0x7fff, 0, 0xffff} {
		if got := must[verbs.PKey](t)(d.PKey(1, index)); got != want {
			t.Errorf("key %d is %s, want %s", index, got, want)
		}
	}
	if got := must[verbs.PKey](t)(d.PKey(2, 0)); got != 0xffff {
		t.Errorf("key 0 of a port without a table is %s", got)
	}
	_, err := d.PKey(1, 1000)
	wantErrno(t, err, verbs.QueryPKey, syscall.EINVAL)
	for index, want := range map[uint16]verbs.WCStatus{0: verbs.WCRetryExc, 1: verbs.WCRetryExc, 2: verbs.WCSuccess} {
		pd := must[verbs.PD](t)(d.AllocPD())
		e := newEnd(t, d, pd, verbs.RC)
		attr, mask := verbs.ToInit(verbs.RC, 1, verbs.AccessLocalWrite)
		attr.PKeyIndex = index
		ok(t, e.Modify(attr, mask))
		port := must[verbs.PortAttr](t)(d.QueryPort(1))
		ok(t, e.Modify(verbs.ToRTR(verbs.RC, verbs.Peer{AH: verbs.AHAttr{Port: 1, DLID: port.LID}, QPN: e.Number(), PathMTU: 1024})))
		ok(t, e.Modify(verbs.ToRTS(verbs.RC)))
		ok(t, e.PostRecv(verbs.RecvWR{}))
		ok(t, e.PostSend(verbs.SendWR{Flags: verbs.SendSignaled}))
		if wcs := must[[]verbs.WC](t)(e.send.Poll(1)); len(wcs) != 1 || wcs[0].Status != want {
			t.Errorf("by key %d: %+v, want %s", index, wcs, want)
		}
	}
}

// TestGRHRequired: a port that wants global addresses takes no others.
func TestGRHRequired(t *testing.T) {
	d := open(t, like(t, "sim_ib0", func(d *simulated.DeviceProfile) { d.Ports[0].GRHRequired = true }))
	if p := must[verbs.PortAttr](t)(d.QueryPort(1)); !p.GRHRequired {
		t.Error("the port does not say so")
	}
	pd := must[verbs.PD](t)(d.AllocPD())
	_, err := pd.CreateAH(verbs.AHAttr{Port: 1, DLID: 12})
	wantErrno(t, err, verbs.CreateAH, syscall.EINVAL)
	gid := must[[]verbs.GIDEntry](t)(d.GIDTable())[0]
	must[verbs.AH](t)(pd.CreateAH(verbs.AHAttr{Port: 1, DLID: 12, Global: true, DGID: gid.GID, SGIDIndex: gid.Index}))
}
