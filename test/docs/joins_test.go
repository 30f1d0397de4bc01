package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var promqlBlock = regexp.MustCompile("(?s)```promql\n(.+?)```")

// TestJoins asks the queries of docs/hardware.md, in the order of the page, of a host that
// other exporters look at, too, and compares what they answer.
func TestJoins(t *testing.T) {
	const (
		ours    = `job="rdma_exporter",instance="n1:10879",host="n1",device="mlx5_0"`
		others  = `job="node",instance="n1:9100",host="n1"`
		adapter = ours + `,pci_address="0000:3b:00.0",slot="4",numa_node="1",driver="mlx5_core",driver_version="6.12.9",board_id="MT_0000000838",netns_mode="shared"`
		port    = ours + `,port="1",link_layer="Ethernet",netdev="eth2",gid="fe80:0000:0000:0000:0e42:a1ff:fe65:bafe"`
		virtual = `job="rdma_exporter",instance="n1:10879",host="n1",device="mlx5_1"`
	)
	input := []series{
		{`rdma_adapter_info{` + adapter + `,sriov_role="pf"}`, "1x20"},
		{`rdma_adapter_info{` + virtual + `,pci_address="0000:3b:00.1",numa_node="0",driver="mlx5_core",netns_mode="shared",sriov_role="vf",sriov_parent="0000:3b:00.0"}`, "1x20"},
		{`rdma_port_info{` + port + `}`, "1x20"},
		{`rdma_port_info{` + virtual + `,port="1",link_layer="Ethernet",gid="fe80:0000:0000:0000:0e42:a1ff:fe65:baff"}`, "1x20"},
		{`rdma_port_roce_v2_ipv4_gid_index{` + ours + `,port="1"}`, "3x20"},
		{`rdma_port_transmit_bytes_total{` + ours + `,port="1"}`, "0+6000x20"},
		{`rdma_port_transmit_bytes_total{` + virtual + `,port="1"}`, "0+6000x20"},
		{`rdma_notification_vector_latency_seconds{` + ours + `,comp_vector="0"}`, "9e-6x20"},
		{`rdma_notification_vector_latency_seconds{` + ours + `,comp_vector="1"}`, "80e-6x20"},
		{`rdma_vector_interrupt_info{` + ours + `,comp_vector="1",irq="121",cpus="7"}`, "1x20"},
		{`node_network_receive_drop_total{` + others + `,device="eth2"}`, "0+120x20"},
		{`node_network_receive_drop_total{` + others + `,device="eth0"}`, "0+60x20"},
		{`node_pcidevice_info{` + others + `,segment="0000",bus="3b",device="00",function="0",parent_segment="0000",parent_bus="3a",parent_device="02",parent_function="0"}`, "1x20"},
	}
	want := [][]sample{
		{{`{job="rdma_exporter",index="3"}`, 1}},
		{{`rdma_port_info{` + virtual + `,port="1",link_layer="Ethernet",gid="fe80:0000:0000:0000:0e42:a1ff:fe65:baff"}`, 1}},
		{{`{` + others + `,device="eth2",rdma_device="mlx5_0",port="1"}`, 2}},
		{{`{` + adapter + `,sriov_role="pf",parent_bus="3a",parent_device="02"}`, 1}},
		{{`{host="n1",device="mlx5_1",sriov_parent="0000:3b:00.0"}`, 100}},
		{{`rdma_notification_vector_latency_seconds{` + ours + `,comp_vector="1"}`, 80e-6}},
	}
	var tests []asked
	for _, p := range pages(t) {
		if p.path != filepath.FromSlash("docs/hardware.md") {
			continue
		}
		for i, m := range promqlBlock.FindAllStringSubmatch(p.text, -1) {
			if i == len(want) {
				t.Fatalf("nothing is expected of the query %s", m[1])
			}
			tests = append(tests, asked{strings.TrimSpace(m[1]), "15m", want[i]})
		}
	}
	if len(tests) != len(want) {
		t.Fatalf("the page has %d queries, want %d", len(tests), len(want))
	}
	ask(t, "joins.yaml", input, tests)
}
