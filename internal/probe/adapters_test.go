package probe_test

import (
	"fmt"
	"strings"
	"testing"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
	"rdma_exporter/verbs/simulated"
)

// An adapter is a device that refuses as some providers do, and has no defect.
type adapter struct{ name, device string }

// Methods of the flush path.
const (
	byUD   = "sends posted to a UD QP in the error state"
	byRC   = "sends posted to an RC QP in the error state"
	byRecv = "receives of a QP that goes into the error state"
)

func adapters() []adapter {
	return []adapter{
		{
			"sets no errno, as bnxt_re of rdma-core 60",
			"like: sim_rxe0, faults: [{verb: ibv_create_qp, when: {qp_types: [UC]}, errno: no_errno}, " +
				"{verb: ibv_create_qp, when: {above: {max_inline_data: 96}}, errno: no_errno}]",
		},
		{
			"whose library does not know the type of its own",
			"like: sim_rxe0, qp_types: [RC, UC, UD, SRD], faults: [{verb: ibv_create_qp, when: {qp_types: [SRD]}, errno: EOPNOTSUPP}]",
		},
		{
			"of which nothing can be probed",
			"like: sim_rxe0, faults: [{verb: ibv_alloc_pd, errno: EOPNOTSUPP}, {verb: ibv_create_cq, errno: EOPNOTSUPP}]",
		},
	}
}

// TestAdapters verifies that unsupported features are skipped and that nothing fails.
func TestAdapters(t *testing.T) {
	rec := golden.Record(t)
	for _, tc := range adapters() {
		r := still(t, tc.load(t), probe.Options{Config: impatient()})
		if r.Error != "" || len(r.Undestroyed) > 0 {
			t.Errorf("%s: error %q, undestroyed %v", tc.name, r.Error, r.Undestroyed)
		}
		var lines []string
		for _, p := range r.Probes {
			if p.Status == state.StatusFailed {
				t.Errorf("%s: %s: %+v", tc.name, p.Name, p.Failures)
			}
			lines = append(lines, fmt.Sprintf("%s %s, skipped: %s", p.Name, p.Status, skips(p.Skips)))
			if p.Latencies != nil {
				lines = append(lines, "taken: "+taken(p.Latencies), "flushed by "+methodOf(p, state.PathFlush).By)
			}
		}
		rec.Add(tc.name, lines...)
	}
}

func (a adapter) load(t *testing.T) *simulated.Profile {
	t.Helper()
	return parse(t, "completion_vectors: 1, "+a.device)
}

// TestUsedOnce verifies that a QP that never returns to RESET, or is of no use afterwards,
// flushes one receive, which is no loss. An errno that is no refusal is a failure.
func TestUsedOnce(t *testing.T) {
	for name, fault := range map[string]string{
		"refused":       "{verb: ibv_modify_qp, when: {to: [RESET]}, errno: EINVAL}",
		"of no use":     "{verb: ibv_post_recv, after: 1, ignore: true}",
		"never at all":  "{verb: ibv_post_recv, ignore: true}",
		"not even INIT": "{verb: ibv_modify_qp, when: {to: [INIT]}, after: 2, errno: EINVAL}",
		"failed":        "{verb: ibv_modify_qp, when: {to: [RESET]}, errno: EIO}",
	} {
		t.Run(name, func(t *testing.T) {
			p := measure(t, "like: sim_siw0, completion_vectors: 1, faults: ["+fault+"]", impatient())
			if name == "failed" {
				if len(p.Failures) == 0 || p.Failures[0].Verb != "ibv_modify_qp" || p.Failures[0].Errno != "EIO" {
					t.Errorf("status %s, failures %+v", p.Status, p.Failures)
				}
				return
			}
			if p.Status != state.StatusSkipped || len(p.Failures) > 0 || taken(p.Latencies) != "" {
				t.Errorf("status %s, failures %v, taken %q", p.Status, p.Failures, taken(p.Latencies))
			}
			const want = "loopback port 1: not_supported, flush any: not_supported, flush solicited: not_supported, flush poll: not_supported"
			if got := skips(p.Skips); got != want {
				t.Errorf("skips %q, want %q", got, want)
			}
		})
	}
}

// TestTypeOfDriver verifies that a type of one driver alone is probed as any other on devices
// that may have it, and not mentioned on others.
func TestTypeOfDriver(t *testing.T) {
	if _, text := probed(t, parse(t, "like: sim_rxe0"), probe.Options{Config: quick()}); strings.Contains(strings.ToLower(text), "srd") {
		t.Errorf("the report of a device without SRD mentions it:\n%s", text)
	}
	const device = "like: sim_rxe0, qp_types: [RC, UC, UD, SRD]"
	qp := named(t, still(t, parse(t, device), probe.Options{Config: quick()}), "qp")
	sizes := join(qp.QPs, func(q state.QPSize) string { return q.Type + " " + q.Profile })
	inline := join(qp.Inline, func(i state.InlineMax) string { return i.Type })
	memory := join(qp.Memory, func(m state.Memory) string { return m.Object + " " + m.Profile })
	if !strings.HasSuffix(sizes, "srd small, srd medium, srd large") || inline != "rc, uc, ud, srd" || !strings.HasSuffix(memory, "qp_srd large") {
		t.Errorf("sizes %s; inline %s; memory %s", sizes, inline, memory)
	}
	r := still(t, parse(t, device+", faults: [{verb: ibv_modify_qp, when: {qp_types: [SRD], to: [ERR]}, errno: EIO}]"), probe.Options{Config: quick()})
	if got := failedSubjects(named(t, r, "qp")); got != "srd small" {
		t.Errorf("failed: %s", got)
	}
}
