package errata_test

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/probe/errata"
)

func TestExplains(t *testing.T) {
	for _, tt := range []struct {
		driver, release string // of the kernel, or behind rdma-core
		contract, way   string
		less            int64
		want            bool
	}{
		{"hns", "6.1.0-56-amd64", "cq_at_least_requested", "cqe", 1, true},
		{"hns", "", "cq_at_least_requested", "cqe", 1, true},
		// More than it is known for.
		{"hns", "6.1.0", "cq_at_least_requested", "cqe", 2, false},
		{"mana", "6.12.3", "cq_at_least_requested", "cqe", 256, true},
		// Another way.
		{"hns", "6.1.0", "qp_at_least_requested", "max_inline_data", 32, true},
		{"hns", "6.1.0", "qp_at_least_requested", "max_send_wr", 1, false},
		{"siw", "6.1.0", "cq_destroy_busy", errata.ModeEnd, 0, true},
		{"siw", "6.1.0", "cq_destroy_busy", errata.ModeAccepted, 0, false},
		{"siw", "6.1.0", "cq_destroy_busy", "", 0, false},
		// Any way.
		{"siw", "6.1.0", "notify_solicited_delivers_errors", "", 0, true},
		// Another contract, another driver, none.
		{"siw", "6.1.0", "notify_any", "", 0, false},
		{"mlx5", "6.1.0", "cq_at_least_requested", "cqe", 1, false},
		{"", "6.1.0", "cq_at_least_requested", "cqe", 1, false},
		{"rxe0", "6.1.0", "srq_reports_actual", "max_wr", 0, false},
		// Fixed by the kernel.
		{"rxe", "6.1.0-56-amd64", "srq_reports_actual", "max_wr", 0, true},
		{"rxe", "6.11.9+deb13", "srq_reports_actual", "max_wr", 0, true},
		{"rxe", "6.12", "srq_reports_actual", "max_wr", 0, false},
		{"rxe", "6.12.57-1", "srq_reports_actual", "max_wr", 0, false},
		{"rxe", "7.0-rc1", "srq_reports_actual", "max_wr", 0, false},
		{"rxe", "", "srq_reports_actual", "max_wr", 0, true},
		{"rxe", "unheard of", "srq_reports_actual", "max_wr", 0, true},
		{"rxe", "7.0-rc1", "srq_limit_ignored", errata.ModeArmed, 0, true},
		// Fixed by the library.
		{"mana", "rdma-core 44.0", "cq_comp_vector_accepted", errata.ModeRefused, 0, true},
		{"mana", "rdma-core 44.12", "cq_comp_vector_accepted", errata.ModeRefused, 0, true},
		{"mana", "rdma-core 65.0", "cq_comp_vector_accepted", errata.ModeRefused, 0, false},
		{"hns", "rdma-core 44.0", "qp_at_least_requested", "max_inline_data", 32, true},
		{"mana", "65.0", "cq_comp_vector_accepted", errata.ModeRefused, 0, true},
		{"mana", "rdma-core 44.0", "cq_comp_vector_accepted", "", 0, false},
		{"mlx5", "rdma-core 44.0", "cq_comp_vector_accepted", errata.ModeRefused, 0, false},
		{"rxe", "rdma-core 65.0", "srq_reports_actual", "max_wr", 0, true},
		{"bnxt_re", "rdma-core 65.0", "notify_any", errata.ModeInError, 0, true},
		{"bnxt_re", "rdma-core 65.0", "notify_any", "", 0, false},
		// Fixed by the kernel, and armed again by the library.
		{"bnxt_re", "6.16.12", "srq_limit_event", "", 0, true},
		{"bnxt_re", "6.17.0-rc3", "srq_limit_event", "", 0, false},
		{"bnxt_re", "6.17.0", "srq_limit_disarmed", errata.ModeArmed, 0, true},
		{"bnxt_re", "6.17.0", "srq_limit_disarmed", "", 0, false},
		{"qedr", "6.17.0", "srq_limit_disarmed", "", 0, true},
	} {
		d := errata.Driver{Name: tt.driver, Kernel: tt.release}
		if library, ok := strings.CutPrefix(tt.release, "rdma-core "); ok {
			d.Kernel, d.RDMACore = "", library
		}
		fact, got := d.Explains(tt.contract, tt.way, tt.less)
		if got != tt.want || got && (fact.Driver != tt.driver || fact.Contract != tt.contract) {
			t.Errorf("%+v: %t, %+v", tt, got, fact)
		}
	}
}

// TestReleases verifies at each boundary that releases of rdma-core that keep a promise are not
// excused, and that those that break it are. Each pair was read in the source of both.
func TestReleases(t *testing.T) {
	for _, tt := range []struct {
		driver, contract, mode string
		breaks, keeps          string
	}{
		{"rxe", "cq_ex_batch_keeps_completions", "", "34.0 44.0 53.6 54.5", "55.0 55.1 58.2 64.0"},
		{"bnxt_re", "notify_one_shot", "", "35.0 44.12 45.11", "46.0 46.10 64.0"},
		{"bnxt_re", "cq_destroy_busy", errata.ModeEnd, "50.0 51.0 64.0", "44.0 49.8"},
		{"bnxt_re", "cq_resize_at_least_requested", errata.ModeEnd, "51.0 53.0 64.0", "45.11 46.0 50.7"},
		{"bnxt_re", "cq_resize_too_small_refused", errata.ModeEnd, "51.0 64.0", "45.11 46.0 50.7"},
		{"bnxt_re", "cq_resize_keeps_completions", errata.ModeEnd, "51.0 64.0", "45.11 46.0 50.7"},
		{"mana", "cq_comp_vector_accepted", errata.ModeRefused, "44.0 44.12 52.6", "53.0 64.0"},
		{
			"efa", "cq_destroy_busy", errata.ModeEnd, "36.0 37.11 38.10 39.9 40.8 41.8 42.8 43.7 44.7 45.0 45.6 46.0 46.5 47.4",
			"37.12 38.11 39.10 40.9 41.9 42.9 43.8 44.8 44.12 45.7 46.6 47.5 48.0 64.0",
		},
		{
			"hns", "qp_at_least_requested", errata.ModeUnsent,
			"32.0 32.8 33.8 34.7 35.6 36.6 37.5 38.4 39.3 40.2 41.2 42.2 43.1 44.0 44.1 45.0",
			"31.9 32.9 33.9 34.8 35.7 36.7 37.6 38.5 39.4 40.3 41.3 42.3 43.2 44.2 44.12 45.1 46.0 64.0",
		},
		{"ocrdma", "notify_one_shot", "", "34.0 44.0 64.0", ""},
		{"siw", "cq_destroy_busy", errata.ModeEnd, "34.0 44.0 64.0", ""},
	} {
		check := func(release string, want bool) {
			d := errata.Driver{Name: tt.driver, RDMACore: release}
			if _, got := d.Explains(tt.contract, tt.mode, 0); got != want {
				t.Errorf("%s %s in rdma-core %q: excused %t, want %t", tt.driver, tt.contract, release, got, want)
			}
		}
		check("", true)
		for _, release := range strings.Fields(tt.breaks) {
			check(release, true)
		}
		for _, release := range strings.Fields(tt.keeps) {
			check(release, false)
		}
	}
}

// TestOnlyRead lists the errata that no test executes, so that nothing else would notice if
// one is lost.
func TestOnlyRead(t *testing.T) {
	want := map[string][]string{
		"cxgb4": {"notify_one_shot", "notify_requires_arming"},
		"ionic": nil,
		"mlx4":  {"qp_recv_caps_ignored_with_srq max_recv_sge", "qp_recv_caps_ignored_with_srq max_recv_wr", "qp_srq_type_restricted accepted"},
		"ocrdma": {
			"cq_resize_too_small_refused accepted", "notify_one_shot", "qp_recv_caps_ignored_with_srq max_recv_sge",
			"qp_reports_actual max_recv_wr", "qp_reports_actual max_send_wr", "srq_limit_ignored armed", "srq_limit_ignored refused",
		},
		"vmw_pvrdma": {"qp_at_least_requested max_inline_data", "qp_at_least_requested unsent", "qp_reports_actual"},
	}
	for driver, facts := range want {
		var got []string
		for _, f := range errata.All() {
			if f.Driver != driver {
				continue
			}
			if len(f.Modes) == 0 {
				got = append(got, f.Contract)
			}
			for _, way := range f.Modes {
				got = append(got, f.Contract+" "+way)
			}
		}
		if slices.Sort(got); !slices.Equal(got, facts) {
			t.Errorf("%s: %q, want %q", driver, got, facts)
		}
	}
}

// TestAll verifies that each row is complete, and that no two are about the same.
func TestAll(t *testing.T) {
	names := strings.Fields("bnxt_re cxgb4 efa erdma hns ionic irdma mana mlx4 mlx5 ocrdma qedr rxe siw vmw_pvrdma")
	seen := make(map[string]bool)
	for _, f := range errata.All() {
		at := f.Driver + " " + f.Contract
		if !slices.Contains(names, f.Driver) {
			t.Errorf("%s: no such driver", at)
		}
		if len(f.Modes) == 0 {
			f.Modes = []string{"any"}
		}
		for _, way := range f.Modes {
			if key := at + " " + way; seen[key] {
				t.Errorf("%s is there twice", key)
			} else {
				seen[key] = true
			}
		}
		if !strings.HasSuffix(f.What, ".") || strings.Contains(f.What+f.Source, "\n") || strings.Contains(f.What+f.Source, "|") {
			t.Errorf("%s: %q", at, f.What)
		}
		if !strings.HasPrefix(f.Source, "Linux") && !strings.HasPrefix(f.Source, "rdma-core") || !strings.Contains(f.Source, ".c") {
			t.Errorf("%s: no function and file in %q", at, f.Source)
		}
	}
	if !slices.IsSortedFunc(errata.All(), func(a, b errata.Erratum) int { return strings.Compare(a.Driver, b.Driver) }) {
		t.Error("the drivers are not in order")
	}
}
