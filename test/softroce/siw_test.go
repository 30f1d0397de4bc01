//go:build vm && siw

package softroce

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/refusal"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/test/running"
)

// Software iWARP is another driver with other faults. It connects through a
// connection manager only and flushes nothing that is posted to a QP in the error
// state, and the process that arms a CQ after its destruction was refused
// crashes: each contract has its verdict all the same, and the probes go on.
func TestSiw(t *testing.T) {
	const siw = "siw0"
	e := start(t, options{flags: []string{"--device.include=" + siw, "--contract.interval=1h"}})
	m := e.until("the contracts to be judged to the end", func(m metrics) bool {
		// What came out is shown a moment after the end is counted.
		return m.sum("rdma_contract_runs_total", "device", siw, "outcome", "ok") > 0 &&
			m.sum("rdma_contract_verdicts", "device", siw) >= contracts
	})
	var violated []string
	for _, s := range m.find("rdma_contract_violated", "device", siw) {
		if number(s) == 1 {
			violated = append(violated, label(s, "contract"))
			if label(s, "known") != "true" {
				t.Errorf("%s is violated, and nothing is known of it", label(s, "contract"))
			}
		}
	}
	slices.Sort(violated)
	if want := []string{
		"cq_destroy_busy", "notify_solicited_delivers_errors", "qp_recv_caps_ignored_with_srq", "qp_reports_actual", "srq_limit_ignored",
	}; !slices.Equal(violated, want) {
		t.Errorf("violated are %v, want %v", violated, want)
	}
	if got, want := notOffered(t, e, siw), []string{
		"cq_ex_at_least_requested", "cq_ex_batch_keeps_completions", "cq_resize_at_least_requested", "cq_resize_keeps_completions", "cq_resize_too_small_refused",
		"notify_solicited_delivers_solicited", "notify_solicited_skips_unsolicited", "qp_sq_sig_all",
		"qp_srq_type_restricted", "srq_limit_disarmed", "srq_limit_event", "srq_reports_actual",
	}; !slices.Equal(got, want) {
		t.Errorf("not offered are %v, want %v", got, want)
	}
	if all := m.find("rdma_contract_skipped", "device", siw); len(all) > 0 {
		t.Errorf("skipped although it is offered: %v", all)
	}
	m.is(t, 1, "rdma_contract_aborts_total", "device", siw, "outcome", "crashed", "verb", "ibv_req_notify_cq")
	m = e.rounds(2, siw)
	m.allOK(t, siw)
	mtu, err := strconv.ParseFloat(askDevinfo(t, siw)["active_mtu"], 64)
	if err != nil {
		t.Error(err)
	}
	m.is(t, mtu, "rdma_port_active_mtu_bytes", "device", siw, "port", "1")
	for line := range strings.Lines(e.log.String()) {
		if strings.Contains(line, "violates a contract") {
			t.Log(strings.TrimSpace(line))
		}
	}
	e.terminate()
}

// Software iWARP gives a process 144 queues, and as many protection domains as it claims.
// The other program finds the same.
func TestSiwCeiling(t *testing.T) {
	const siw = "siw0"
	program := climber(t)
	claimed := askDevinfo(t, siw)
	before := resources(t)
	for _, typ := range []string{"cq", "qp", "srq", "pd"} {
		r, status := ceilingOf(t, nil, siw, typ)
		n, errno := climbed(t, nil, program, siw, typ)
		awaitResources(t, before)
		t.Logf("%s: %d, claimed %s, ended by %s: %s; by the program %d, errno %d", typ, r.Objects, claimed["max_"+typ], r.EndedBy, r.Detail, n, errno)
		if r.EndedBy != refusal.Device || status != 0 || r.Objects != n || r.Objects == 0 {
			t.Errorf("%s: status %d, %+v; the program had %d", typ, status, r, n)
		}
	}
	r, status := ceilingOf(t, nil, siw, "ah")
	if r.EndedBy != refusal.Unknown || status != 1 || r.Errno != "EOPNOTSUPP" {
		t.Errorf("ah: status %d, %+v", status, r)
	}
}

// A climb of software iWARP that is ended in the middle gives all back as one of Soft-RoCE.
// Of queues it would be at its end too soon.
func TestSiwCeilingInterrupted(t *testing.T) { ceilingInterrupted(t, "siw0", "mr") }

// Flaps of a port of software iWARP are counted as those of Soft-RoCE, though no file of older
// kernels tells which network device it has.
func TestSiwFlaps(t *testing.T) { flapsOf(t, "siw") }

// rdmaLink asks for the network devices of ports over netlink.
type rdmaLink struct{ conn *restrack.Conn }

func (l rdmaLink) Netdev(ctx context.Context, device string, port int) (string, error) {
	devices, err := l.conn.Devices(ctx)
	if err != nil {
		return "", err
	}
	for _, d := range devices {
		if d.Name == device {
			return l.conn.Netdev(ctx, d.Index, port)
		}
	}
	return "", syscall.ENODEV
}

// What is read of software iWARP is what ip(8) shows of its network device. Its driver counts
// nothing, and so say both rdma(8), by an error, and what is read, by no counter.
func TestSiwHardware(t *testing.T) {
	const siw = "siw0"
	conn := running.Must(restrack.Dial())(t)
	defer func() { _ = conn.Close() }()
	h := hardware.Read(t.Context(), hardware.Options{Device: siw, Driver: "siw", Netdevs: rdmaLink{conn}})
	if h.Failure != "" || h.Driver != "siw" || h.Table != "" || len(h.Ports) != 1 {
		t.Fatalf("got %+v", h)
	}
	p := h.Ports[0]
	if p.Netdev != "veth4" || len(p.Counters)+len(h.Counters)+len(p.Refused)+len(h.Refused) > 0 {
		t.Errorf("got %+v", h)
	}
	out, err := exec.Command("rdma", "statistic", "show", "link", siw+"/1").CombinedOutput()
	if err == nil {
		t.Errorf("rdma shows counters")
	}
	t.Logf("%s: no counters; rdma says %s", siw, out)
	asIP(t, &p)
}
