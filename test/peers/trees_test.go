//go:build vm

package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/hardware/hardwaretest"
)

// migrated is a row of docs/migration.md: a metric of node_exporter, and the file from
// which it is.
var migrated = regexp.MustCompile("(?m)^\\| `(node_infiniband_[a-z0-9_]+)` \\| `[a-z_]+/(\\w+)` \\|")

// TestTrees has node_exporter show the trees of adapters of several vendors, and holds each
// number beside ours.
func TestTrees(t *testing.T) {
	page, err := os.ReadFile("../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	theirName := make(map[string]string)
	for _, r := range migrated.FindAllStringSubmatch(string(page), -1) {
		theirName[r[2]] = r[1]
	}
	for _, name := range hardwaretest.Names(t) {
		root := hardwaretest.Tree(t, name)
		p := serve(t, nodeExporterFile, append([]string{"--path.sysfs=" + filepath.Join(root, "sys")}, nodeExporterFlags...)...)
		text := p.text(t)
		p.stop()
		for _, device := range hardwaretest.Devices(t, root) {
			h := hardware.Read(t.Context(), hardware.Options{Device: device, Sysfs: filepath.Join(root, "sys"), Procfs: filepath.Join(root, "proc")})
			for _, port := range h.Ports {
				for _, v := range counters.Of(h.Table, port.LinkLayer, port.Counters) {
					theirs, there := sample(text, theirName[v.Counter], device, port.Number)
					shown := "–"
					if there {
						shown = strconv.FormatFloat(theirs, 'f', -1, 64)
					}
					t.Logf("| %s | %s | `%s` | %d | %s |", name, device, v.Metric, v.Value, shown)
					if h.Table == "hfi1" && strings.HasSuffix(v.Metric, "_bytes_total") {
						theirs *= 2 // It takes the unit of hfi1, 8 bytes, for 4.
					}
					if there && theirs != float64(v.Value) {
						t.Errorf("%s: %s of %s is %d, and %v of node_exporter", name, v.Metric, device, v.Value, theirs)
					}
				}
			}
		}
	}
}

// sample returns the sample of a port.
func sample(text, name, device string, port int) (float64, bool) {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(line, fmt.Sprintf("%s{device=%q,port=\"%d\"} ", name, device, port))
		if !ok || name == "" {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return f, err == nil
	}
	return 0, false
}
