package hardware_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/hardware/hardwaretest"
)

// TestPage makes sure that docs/reference/adapters.md has what is shown of the first port of
// each tree. What node_exporter shows, make bench-peers writes.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/adapters.md")
	check(t, err)
	_, rest, _ := strings.Cut(string(page), "\n## ")
	sections := strings.Split(rest, "\n## ")
	names := hardwaretest.Names(t)
	has(t, len(names), len(sections))
	for i, name := range names {
		same(t, true, strings.HasPrefix(sections[i], name+"\n"), name)
		var got, want []string
		for line := range strings.Lines(sections[i]) {
			if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `rdma_") && !strings.Contains(line, "rdma_port_counter_saturated") {
				got = append(got, strings.Join(cells[:3], " | "))
			}
		}
		root := hardwaretest.Tree(t, name)
		h := hardware.Read(t.Context(), options(root, hardwaretest.Devices(t, root)[0]))
		for _, v := range counters.Of(h.Table, h.Ports[0].LinkLayer, h.Ports[0].Counters) {
			for _, m := range counters.Metrics() {
				if m.Name == v.Metric {
					want = append(want, fmt.Sprintf("| `%s` | %s | %d", m.Name, m.Unit, v.Value))
				}
			}
		}
		same(t, want, got, name)
	}
}
