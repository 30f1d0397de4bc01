package api_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

func TestPathRows(t *testing.T) {
	t.Parallel()
	paths := append(apitest.Paths(), state.PathState{Path: state.Path{Peer: "[2001:db8::7]:10879", PeerDevice: "rxe0", Result: state.PathReverse, Suspect: state.SuspectPath, Sent: 9, LostForward: 2, LostReverse: 7}, Failures: 12},
		state.PathState{Path: state.Path{Peer: "node-22:10879", Result: state.PathSource, Suspect: state.SuspectDevice}},
		state.PathState{Path: state.Path{Peer: "node-23:10879", PeerDevice: "rxe0", Result: state.PathOK, RC: "retry_exc_err"}})
	want := []struct{ cells, like string }{
		{"node-18:10879|mlx5_0|ok, RC success||2.9 µs, 3.4 µs, 81 µs|0, 0 of 9|4096|20 s ago", ""},
		{"node-19:10879|mlx5_0|lost_forward|path||6, 1 of 9|4096|10 min ago, failed 2 times", "warning"},
		{"node-20:10879|mlx5_3|slow|path|2.9 µs, 3.4 µs, 81 µs|0, 0 of 9|4096|20 s ago", "warning"},
		{"node-21:10879||control_unreachable|||||not yet, failed 1 time", "info"},
		{"[2001:db8::7]:10879|rxe0|lost_reverse|path||2, 7 of 9||not yet, failed 12 times", "warning"},
		{"node-22:10879||source_device|device||||not yet", "warning"},
		{"node-23:10879|rxe0|ok, RC retry_exc_err|||||not yet", "warning"},
	}
	rows := api.PathRows("mlx5_0", paths, apitest.Now())
	for i, r := range rows {
		if cells := strings.Join(r.Cells, "|"); cells != want[i].cells || string(r.Like) != want[i].like || len(r.Cells) != len(api.PathColumns()) {
			t.Errorf("got %s like %q, want %v", cells, r.Like, want[i])
		}
	}
	if len(rows) != len(want) || api.PathRows("", nil, apitest.Now()) != nil {
		t.Errorf("%d rows, want %d, and none of no paths", len(rows), len(want))
	}
}

// TestPathResults verifies that docs/path.md has a row for each result, and docs/reference/findings.md
// the action that the report shows.
func TestPathResults(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/path.md")
	findings, findingsErr := os.ReadFile("../../docs/reference/findings.md")
	if err := errors.Join(err, findingsErr); err != nil {
		t.Fatal(err)
	}
	for _, result := range state.PathResults() {
		r := api.PathRows("", []state.PathState{{Path: state.Path{Result: result}}}, apitest.Now())[0]
		if ok := result == state.PathOK; (r.Action == "") != (ok || result == state.PathUnsupported) || (r.Like == "") != ok || r.Like == health.SeverityCritical {
			t.Errorf("%s: looks like %q, with %q", result, r.Like, r.Action)
		}
		if row := "\n| `" + string(result) + "` |"; !strings.Contains(string(page), row) || !strings.Contains(string(findings), r.Action) {
			t.Errorf("there is no row for %s, or not %q", result, r.Action)
		}
	}
}
