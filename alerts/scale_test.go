package alerts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/test/running"
)

// TestScale verifies that one cause on many nodes raises one alert.
func TestScale(t *testing.T) {
	t.Parallel()
	const scrapes = 50 // one each 30 seconds
	add := func(all *[]series, metric, node, labels, values string) {
		if labels != "" {
			labels = "," + labels
		}
		*all = append(*all, series{fmt.Sprintf(`%s{job="rdma_exporter",instance=%q%s}`, metric, node, labels), values})
	}
	fleet := func(nodes int) []series {
		var all []series
		for n := range nodes {
			add(&all, "rdma_devices", fmt.Sprint("n", n), "", fmt.Sprint("8x", scrapes))
		}
		add(&all, "up", "n0", "", fmt.Sprint("1x", scrapes))
		return all
	}

	unopened := fleet(20)
	for n := range 20 {
		for d := range 8 {
			device := fmt.Sprintf("device=\"mlx5_%d\"", d)
			add(&unopened, "rdma_device_info", fmt.Sprint("n", n), device+`,vendor_id=""`, fmt.Sprint("1x", scrapes))
			add(&unopened, "rdma_probe_last_run_timestamp_seconds", fmt.Sprint("n", n), device, fmt.Sprint("0+30x", scrapes))
			add(&unopened, "rdma_finding_info", fmt.Sprint("n", n), device+`,finding="device_unusable",severity="critical",`+
				`reason="ibv_open_device fails with EPERM",verb="ibv_open_device",errno="EPERM"`, fmt.Sprint("1x", scrapes))
		}
	}

	// The port of n0 has been down since minute 1. The leaf switch of the others dies in minute 20, and their requests to
	// the healthy peers n41 to n60 fail after all retries.
	leaf := fleet(1000)
	for n := range 61 {
		node, values := fmt.Sprint("n", n), fmt.Sprint("4x", scrapes)
		switch {
		case n == 0:
			values = fmt.Sprint("4x2 1x", scrapes-3)
		case n <= 40:
			values = fmt.Sprint("4x30 1x", scrapes-31)
		}
		add(&leaf, "rdma_port_state_id", node, `device="mlx5_3",port="1"`, values)
		add(&leaf, "rdma_port_state_id", node, `device="mlx5_4",port="1"`, fmt.Sprint("4x", scrapes))
		if n > 0 {
			add(&leaf, "rdma_port_retries_exceeded_total", node, `device="mlx5_3",port="1"`, fmt.Sprint("0x34 40x", scrapes-35))
			add(&leaf, "rdma_resource_queue_pairs", node, `device="mlx5_3",qp_type="rc",state="err"`, fmt.Sprint("0x34 40x", scrapes-35))
		}
	}

	// They boot in minute 10, and no port is active before minute 15.
	booting := fleet(100)
	for n := range 100 {
		add(&booting, "rdma_exporter_boot_time_seconds", fmt.Sprint("n", n), "", fmt.Sprint("0x20 600x", scrapes-21))
		add(&booting, "rdma_port_state_id", fmt.Sprint("n", n), `device="mlx5_0",port="1"`, fmt.Sprint("4x20 1x9 4x", scrapes-31))
	}

	// Each job is named after its nodes and those whose mlx5_3 goes down in minute 10.
	var rails []series
	for _, r := range []struct{ nodes, down int }{{300, 3}, {400, 3}, {400, 4}, {10000, 15}, {10000, 16}} {
		labels := fmt.Sprintf(`{job="%d of %d"`, r.down, r.nodes)
		rails = append(rails, series{"job:rdma_nodes:count" + labels + "}", fmt.Sprint(r.nodes, "x", scrapes)})
		for n := range r.down {
			port := fmt.Sprintf(`rdma_port_state_id%s,instance="n%d",device="mlx5_3",port="1"}`, labels, n)
			rails = append(rails, series{port, fmt.Sprint("4x19 1x", scrapes-20)})
		}
	}

	names := "count by (alertname, finding, device, instance) (ALERTS{alertstate=\"firing\"})"
	file := testFile{EvaluationInterval: "30s", Tests: []testGroup{
		{Name: "20 nodes that cannot open their 8 devices", Interval: "30s", InputSeries: unopened, PromqlExprTest: []exprTest{
			{names, "20m", []expSample{{`{alertname="RDMAFleetFailing",finding="device_unusable"}`, 1}}},
		}},
		{Name: "a dead leaf switch", Interval: "30s", InputSeries: leaf, PromqlExprTest: []exprTest{
			{names, "14m", []expSample{{`{alertname="RDMAPortDown",instance="n0"}`, 1}}},
			{names, "22m", []expSample{
				{`{alertname="RDMAPortDown",instance="n0"}`, 1},
				{`{alertname="RDMARailDown",finding="port_down",device="mlx5_3"}`, 1},
			}},
		}},
		{Name: "what is a rail", Interval: "30s", InputSeries: rails, PromqlExprTest: []exprTest{
			{`sum by (job) (ALERTS{alertstate="firing",alertname="RDMARailDown"})`, "20m", []expSample{
				{`{job="3 of 300"}`, 1}, {`{job="4 of 400"}`, 1}, {`{job="16 of 10000"}`, 1},
			}},
		}},
		{Name: "a power cut", Interval: "30s", InputSeries: booting, PromqlExprTest: []exprTest{
			{names, "13m", nil}, {names, "24m", nil},
		}},
	}}
	for _, path := range []string{recordingFile, alertsFile} {
		var rules ruleFile
		decode(t, path, &rules)
		for _, g := range rules.Groups {
			file.GroupEvalOrder = append(file.GroupEvalOrder, g.Name)
		}
		file.RuleFiles = append(file.RuleFiles, running.Must(filepath.Abs(path))(t))
	}
	tool := running.FindPrometheus(t, "promtool")
	for _, g := range file.Tests {
		file.Tests = []testGroup{g}
		path := filepath.Join(t.TempDir(), strings.ReplaceAll(g.Name, " ", "_")+".yaml")
		running.Check(t, os.WriteFile(path, running.Must(yaml.Marshal(file))(t), 0o600))
		promtool(t, tool, g.Name, "test", "rules", path)
	}
}
