package probe_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs/simulated"
)

// An adapter is a device that refuses as some providers do, and has no defect.
type adapter struct {
	name, device string
	// taken are the measurements, and by names the method of the flush path.
	taken, by string
	// skips are those of all probes.
	skips string
	// skipped are the probes that were skipped.
	skipped string
}

const (
	allLoopback = "loopback any 1/0, loopback solicited 1/0, loopback poll 1/0"
	allFlush    = "flush any 1/0, flush solicited 1/0, flush poll 1/0"
	byUD        = "sends posted to a UD QP in the error state"
	byRC        = "sends posted to an RC QP in the error state"
	byRecv      = "receives of a QP that goes into the error state"
	noRaw       = "qp: raw_packet: not_supported"
)

func adapters() []adapter {
	return []adapter{
		{
			name: "sets no errno, as bnxt_re of rdma-core 60",
			device: "like: sim_rxe0, faults: [{verb: ibv_create_qp, when: {qp_types: [UC]}, errno: no_errno}, " +
				"{verb: ibv_create_qp, when: {above: {max_inline_data: 96}}, errno: no_errno}]",
			taken: allLoopback + ", " + allFlush, by: byUD, skips: "qp: uc: not_supported, " + noRaw,
		},
		{
			name:   "whose library does not know the type of its own",
			device: "like: sim_rxe0, qp_types: [RC, UC, UD, SRD], faults: [{verb: ibv_create_qp, when: {qp_types: [SRD]}, errno: EOPNOTSUPP}]",
			taken:  allLoopback + ", " + allFlush, by: byUD, skips: noRaw + ", qp: srd: not_supported",
		},
		{
			name:    "of which nothing can be probed",
			device:  "like: sim_rxe0, faults: [{verb: ibv_alloc_pd, errno: EOPNOTSUPP}, {verb: ibv_create_cq, errno: EOPNOTSUPP}]",
			skips:   "cq: : not_supported",
			skipped: "cq",
		},
	}
}

// TestAdapters verifies that unsupported features are skipped and that nothing fails.
func TestAdapters(t *testing.T) {
	for _, tc := range adapters() {
		t.Run(tc.name, func(t *testing.T) {
			r := still(t, tc.load(t), probe.Options{Config: impatient()})
			if r.Error != "" || len(r.Undestroyed) > 0 {
				t.Errorf("error %q, undestroyed %v", r.Error, r.Undestroyed)
			}
			var skipped, skips, measurements []string
			by := ""
			for _, p := range r.Probes {
				switch p.Status {
				case state.StatusOK:
				case state.StatusFailed:
					t.Errorf("%s: %+v", p.Name, p.Failures)
				case state.StatusSkipped:
					skipped = append(skipped, p.Name)
				}
				for _, s := range p.Skips {
					skips = append(skips, p.Name+": "+s.Subject.String()+": "+string(s.Reason))
				}
				if p.Latencies != nil {
					measurements = append(measurements, taken(p.Latencies))
				}
				by += methodOf(p, state.PathFlush).By
			}
			same := func(what, got, want string) {
				if sorted(got) != sorted(want) {
					t.Errorf("%s:\n%s, want\n%s", what, got, want)
				}
			}
			same("skipped", strings.Join(skipped, ", "), tc.skipped)
			same("skips", strings.Join(skips, ", "), tc.skips)
			same("taken", strings.Join(measurements, ", "), tc.taken)
			if by != tc.by {
				t.Errorf("flushed by %q, want %q", by, tc.by)
			}
		})
	}
}

func (a adapter) load(t *testing.T) *simulated.Profile {
	t.Helper()
	return parse(t, "completion_vectors: 1, "+a.device)
}

// sorted sorts what a text lists.
func sorted(list string) string {
	words := strings.Split(list, ", ")
	slices.SortFunc(words, cmp.Compare)
	return strings.Join(words, ", ")
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
