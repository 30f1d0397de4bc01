//go:build vm

package check

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/ibverbs"
)

// made are the verbs that a provider called.
type made struct{ list []verbs.Verb }

func (c *made) Begin(v verbs.Verb) { c.list = append(c.list, v) }
func (*made) End(verbs.Call)       {}

// closed has an object be closed when the test ends, before those that it is built on.
func closed[T interface{ Close() error }](t testing.TB, object T) T {
	t.Helper()
	t.Cleanup(func() {
		if err := object.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return object
}

// TestSRD has the exporter probe SRD queue pairs on each adapter of efa. Then it has this
// process hold some, sends a message from one to another, and looks for them in the
// kernel's tables and in the exporter's inventory of this process. The libraries of other adapters are not asked for one.
func TestSRD(t *testing.T) {
	for _, a := range adapters(t) {
		t.Run(a.spec, func(t *testing.T) {
			var called made
			d := closed(t, running.Must(ibverbs.New(&called).Open(a.name))(t))
			isEFA := strings.HasPrefix(a.of(), "efa")
			if got := slices.Contains(d.QPTypes(), verbs.SRD); got != isEFA {
				t.Fatalf("the device may have %v", d.QPTypes())
			}
			if a.of() == "mana" && rdmaCore(t) == "44" {
				return // no CQ without allocators of its own
			}
			pd := closed(t, running.Must(d.AllocPD())(t))
			q := closed(t, running.Must(d.CreateCQ(verbs.CQInitAttr{Entries: 16}))(t))
			if isEFA {
				holdSRD(t, a, d, pd, q)
				return
			}
			_, err := pd.CreateQP(srdAttr(q))
			if !errors.Is(err, syscall.EOPNOTSUPP) || slices.Contains(called.list, verbs.CreateQP) {
				t.Errorf("an SRD queue pair: %v; called were %v", err, called.list)
			}
		})
	}
}

func srdAttr(q verbs.CQ) verbs.QPInitAttr {
	sizes := verbs.QPCap{MaxSendWR: 5, MaxRecvWR: 6, MaxSendSGE: 2, MaxRecvSGE: 1}
	return verbs.QPInitAttr{Type: verbs.SRD, SendCQ: q, RecvCQ: q, Cap: sizes}
}

func holdSRD(t *testing.T, a adapter, d verbs.Device, pd verbs.PD, q verbs.CQ) {
	t.Helper()
	before := queuePairs(t, a)
	r := child(t, a, state.KindProbe)
	var sizes, inline []string
	for _, p := range r.Probes {
		for _, s := range p.QPs {
			if s.Type == verbs.SRD.Label() {
				sizes = append(sizes, s.Profile)
			}
		}
		for _, s := range p.Inline {
			if s.Type == verbs.SRD.Label() {
				inline = append(inline, strconv.FormatInt(s.Bytes, 10))
			}
		}
	}
	if !slices.Equal(sizes, []string{"small", "medium", "large"}) || !slices.Equal(inline, []string{"32"}) {
		t.Errorf("the exporter probed SRD queue pairs of the sizes %v and inline data of %v bytes", sizes, inline)
	}
	if left := queuePairs(t, a); left != before {
		t.Errorf("a probe left queue pairs: the kernel lists %+v, and listed %+v before", left, before)
	}
	const more = 3
	var list []verbs.QP
	for range more {
		p := closed(t, running.Must(pd.CreateQP(srdAttr(q)))(t))
		list = append(list, p)
		modify := func(attr verbs.QPAttr, mask verbs.QPAttrMask) {
			t.Helper()
			if err := p.Modify(attr, mask); err != nil {
				t.Fatalf("to %s: %v", attr.State, err)
			}
		}
		modify(verbs.ToInit(verbs.SRD, 1, 0))
		modify(verbs.ToRTR(verbs.SRD, verbs.Peer{}))
		modify(verbs.ToRTS(verbs.SRD))
		if now := running.Must(p.Query())(t); now.State != verbs.RTS || p.Created().MaxSendWR < 5 || p.Created().MaxRecvWR < 6 {
			t.Errorf("created with %+v, now %+v", p.Created(), now)
		}
	}
	talk(t, d, pd, q, list[0], list[1])

	// The table and its count have each of them once.
	want := tracked{counted: before.counted + more, listed: before.listed + more, own: more}
	if after := queuePairs(t, a); after != want || after.counted != after.listed {
		t.Errorf("with %d SRD queue pairs more the kernel lists %+v, and listed %+v before", more, after, before)
	}
	if n := heldHere(t, a); n != more {
		t.Errorf("this process holds %d queue pairs, and %d as the exporter says", more, n)
	}
}

// talk sends a message from one queue pair to another.
func talk(t *testing.T, d verbs.Device, pd verbs.PD, q verbs.CQ, from, to verbs.QP) {
	t.Helper()
	addresses := running.Must(verbs.ToSelf(1, running.Must(d.QueryPort(1))(t), running.Must(d.GIDTable())(t)))(t)
	address := closed(t, running.Must(pd.CreateAH(addresses[0]))(t))
	m := closed(t, running.Must(pd.RegMR(4096, verbs.AccessLocalWrite))(t))
	const text = "scalable"
	copy(m.Bytes(), text)
	running.Check(t, to.PostRecv(verbs.RecvWR{ID: 7, SGEs: []verbs.SGE{m.SGE(1024, 64)}}))
	err := from.PostSend(verbs.SendWR{
		ID: 8, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{m.SGE(0, len(text))},
		AH: address, RemoteQPN: to.Number(), RemoteQKey: verbs.UDQKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	var done []verbs.WC
	running.Eventually(t, "the message is sent and received", func() bool {
		done = append(done, running.Must(q.Poll(2))(t)...)
		return len(done) >= 2
	})
	for _, wc := range done {
		if wc.Status != verbs.WCSuccess || wc.ID == 7 && (int(wc.ByteLen) != len(text) || wc.SrcQP != from.Number()) {
			t.Errorf("completion %+v", wc)
		}
	}
	if got := string(m.Bytes()[1024:][:len(text)]); got != text {
		t.Errorf("received %q", got)
	}
}

// tracked describes the kernel's table of the queue pairs of a device: how many there are,
// how many rows its table has, and how many rows are SRD queue pairs of this process.
type tracked struct{ counted, listed, own int }

func queuePairs(t *testing.T, a adapter) (found tracked) {
	t.Helper()
	conn := closed(t, running.Must(restrack.Dial())(t))
	devices := running.Must(conn.Devices(t.Context()))(t)
	index := devices[slices.IndexFunc(devices, func(d restrack.Device) bool { return d.Name == a.name })].Index
	for _, c := range running.Must(conn.Summary(t.Context(), index))(t) {
		if c.Name == "qp" {
			found.counted = int(c.Objects)
		}
	}
	err := conn.Dump(t.Context(), index, restrack.QP, func(o *restrack.Object) error {
		found.listed++
		_, err := os.Stat("/proc/self/task/" + strconv.Itoa(int(o.Thread)))
		if err == nil && o.QPType == "driver" && o.QPState == "rts" {
			found.own++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func child(t *testing.T, a adapter, kind state.Kind) state.Run {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), exporterFile, string(kind), "--device="+a.name)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	text := stdout.String()
	r := state.Run{Kind: kind, Device: a.name}
	if err := wire.Read(&stdout, &r); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return r
}

// heldHere returns how many queue pairs this process holds, as the exporter says.
func heldHere(t *testing.T, a adapter) int64 {
	t.Helper()
	for _, o := range child(t, a, state.KindInventory).Inventory.Owners {
		for _, c := range o.Objects {
			if o.PID == os.Getpid() && c.Type == "qp" {
				return c.Objects
			}
		}
	}
	return 0
}
