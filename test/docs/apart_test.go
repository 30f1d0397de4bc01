package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// troubled are the series of one exporter that has something of all that docs/queries.md
// asks for, without job and instance.
func troubled() map[string]string {
	const d = `device="mlx5_0"`
	return map[string]string{
		`rdma_probe_success{` + d + `,probe="qp"}`:                                          "0x60",
		`rdma_probe_last_run_timestamp_seconds{` + d + `}`:                                  "100x60",
		`rdma_probe_last_success_timestamp_seconds{` + d + `}`:                              "50x60",
		`rdma_probe_stuck{` + d + `,verb="ibv_destroy_cq"}`:                                 "1x60",
		`rdma_probe_aborts_total{` + d + `,verb="ibv_destroy_cq",reason="timeout"}`:         "1x60",
		`rdma_probe_skipped{` + d + `,probe="srq",reason="unsupported"}`:                    "1x60",
		`rdma_verbs_errors_total{` + d + `,verb="ibv_create_qp",errno="ENOMEM"}`:            "0+1x60",
		`rdma_probe_cq_entries_requested{profile="small"}`:                                  "16x60",
		`rdma_probe_cq_entries_actual{` + d + `,profile="small"}`:                           "8x60",
		`rdma_probe_srq_work_requests_requested{profile="small"}`:                           "16x60",
		`rdma_probe_srq_work_requests_actual{` + d + `,profile="small"}`:                    "8x60",
		`rdma_notification_latency_seconds_bucket{` + d + `,path="loopback",le="0.001"}`:    "0+9x60",
		`rdma_notification_latency_seconds_bucket{` + d + `,path="loopback",le="+Inf"}`:     "0+9x60",
		`rdma_notification_vector_latency_seconds{` + d + `,comp_vector="0"}`:               "1x60",
		`rdma_notification_vector_latency_seconds{` + d + `,comp_vector="1"}`:               "1x60",
		`rdma_notification_vector_latency_seconds{` + d + `,comp_vector="2"}`:               "1x60",
		`rdma_notification_vector_latency_seconds{` + d + `,comp_vector="3"}`:               "1x60",
		`rdma_notification_vector_latency_seconds{` + d + `,comp_vector="4"}`:               "1x60",
		`rdma_notification_vector_latency_seconds{` + d + `,comp_vector="5"}`:               "99x60",
		`rdma_notifications_missed_total{` + d + `,path="loopback",port="1"}`:               "0+1x60",
		`rdma_contract_violated{` + d + `,contract="cq",severity="critical",known="false"}`: "1x60",
		`rdma_probe_undestroyed_objects{` + d + `,type="cq"}`:                               "1x60",
		`rdma_resource_objects{` + d + `,type="qp",owner="user"}`:                           "90x60",
		`rdma_resource_limit{` + d + `,type="qp"}`:                                          "100x60",
		`rdma_resource_owner_objects{` + d + `,type="qp",comm="trainer",pod_uid="p"}`:       "0+1x60",
		`rdma_resource_orphaned_objects{` + d + `,type="qp"}`:                               "1x60",
		`rdma_probe_leaked_objects{` + d + `,type="qp"}`:                                    "1x60",
		`rdma_owner_locked_bytes{comm="trainer",kind="pinned"}`:                             "90x60",
		`rdma_owner_locked_limit_bytes{comm="trainer"}`:                                     "100x60",
		`rdma_findings{severity="warning",accepted="false"}`:                                "1x60",
		`rdma_finding_first_seen_timestamp_seconds{` + d + `,finding="probe_failed"}`:       "1x60",
		`rdma_port_state_id{` + d + `,port="1"}`:                                            "1x60",
		`rdma_port_state_changes_total{` + d + `,port="1",to="down"}`:                       "0+1x60",
		`rdma_port_rate_bits_per_second{` + d + `,port="1"}`:                                "1x60",
		`rdma_port_max_rate_bits_per_second{` + d + `,port="1"}`:                            "2x60",
		`rdma_port_transmit_bytes_total{` + d + `,port="1"}`:                                "0+1x60",
		`rdma_port_cnps_handled_total{` + d + `,port="1"}`:                                  "0+1x60",
		`rdma_adapter_pci_width_lanes{` + d + `,link="adapter"}`:                            "8x60",
		`rdma_adapter_pci_max_width_lanes{` + d + `,link="adapter"}`:                        "16x60",
	}
}

// asks is code of docs/queries.md that is a query, and no flag or name of a page.
var asks = regexp.MustCompile(`^(8 \* )?[a-z_]+( by )?[ (]|^rdma_[a-z_]+(\{|$)`)

// TestQueriesKeepApart asks each query of docs/queries.md of two exporters that two jobs
// scrape. Each has to answer of all four, and not of several in one.
func TestQueriesKeepApart(t *testing.T) {
	var input []series
	for _, target := range []string{`job="a",instance="n1:10879"`, `job="a",instance="n2:10879"`, `job="b",instance="n1:10879"`, `job="b",instance="n2:10879"`} {
		for s, values := range troubled() {
			input = append(input, series{strings.Replace(s, "{", "{"+target+",", 1), values})
		}
	}
	var tests []asked
	for _, p := range pages(t) {
		if p.path != filepath.FromSlash("docs/queries.md") {
			continue
		}
		for _, line := range p.prose() {
			cells := strings.SplitN(line, " | ", 2)
			if len(cells) != 2 {
				continue
			}
			for _, m := range span.FindAllStringSubmatch(cells[1], -1) {
				if asks.MatchString(m[1]) {
					tests = append(tests, asked{fmt.Sprintf("count(count by (job, instance) (%s))", m[1]), "1h", []sample{{"{}", 4}}})
				}
			}
		}
	}
	if len(tests) < 25 {
		t.Errorf("only %d queries were found", len(tests))
	}
	slices.SortFunc(input, func(a, b series) int { return strings.Compare(a.Series, b.Series) })
	ask(t, "apart.yaml", input, tests)
}
