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
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
)

// migrated is a row of docs/migration.md: a metric of node_exporter, and the file from
// which it is.
var migrated = regexp.MustCompile("(?m)^\\| `(node_infiniband_[a-z0-9_]+)` \\| `[a-z_]+/(\\w+)` \\|")

// treesPage is the page that TestTrees writes.
const treesPage = "../../docs/reference/adapters.md"

// treesHead is how it begins.
const treesHead = `# Counters of adapters, beside node_exporter

` + "`make bench-peers`" + ` writes this page. It has node_exporter 1.12.1 and this exporter read the same files: the sysfs of the
adapters in ` + "`internal/hardware/hardwaretest/testdata`" + `. The first lines of each file there say whether its counters come from a
public capture of a real adapter, or only their names, from the driver's source. Netlink counters, such as pause frames,
are in no file.

Each table is of one port. It has what this exporter shows under the names shared by all drivers, and what
node_exporter shows of the same counter; – is nothing.

- In ` + "`hw_counters/`" + ` node_exporter knows mlx5's names only.
- hfi1 counts units of 8 bytes, of which node_exporter shows half.
- A counter at its maximum is no metric here; ` + "`rdma_port_counter_saturated`" + ` is 1 instead. Of further ports only
  these counters are listed.
- Metrics of errors that a healthy link never has are absent as long as they are 0, as [metrics.md](metrics.md) says
  of each.
- What else node_exporter shows are raw counters here: see [migration.md](../migration.md).
`

// TestTrees has node_exporter show the trees of adapters of several vendors, holds each
// number beside ours, and compares docs/reference/adapters.md with both.
func TestTrees(t *testing.T) {
	page, err := os.ReadFile("../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	theirName := make(map[string]string)
	for _, r := range migrated.FindAllStringSubmatch(string(page), -1) {
		theirName[r[2]] = r[1]
	}
	var b strings.Builder
	b.WriteString(treesHead)
	for _, name := range hardwaretest.Names(t) {
		root := hardwaretest.Tree(t, name)
		p := serve(t, nodeExporterFile, append([]string{"--path.sysfs=" + filepath.Join(root, "sys")}, nodeExporterFlags...)...)
		tree := tree{name: name, text: p.text(t), theirName: theirName}
		p.stop()
		fmt.Fprintf(&b, "\n## %s\n", name)
		shown := false
		for _, device := range hardwaretest.Devices(t, root) {
			h := hardware.Read(t.Context(), hardware.Options{Device: device, Sysfs: filepath.Join(root, "sys"), Procfs: filepath.Join(root, "proc")})
			for i := range h.Ports {
				// The others are like the first.
				rows := tree.rows(t, &h, &h.Ports[i], shown)
				if rows == "" {
					continue
				}
				shown = true
				fmt.Fprintf(&b, "\n%s, port %d, %s\n\n| metric | unit | value | node_exporter | value |\n|---|---|--:|---|--:|\n%s",
					device, h.Ports[i].Number, h.Ports[i].LinkLayer, rows)
			}
		}
		if !shown {
			b.WriteString("\nNeither shows any counter.\n")
		}
	}
	golden.Check(t, treesPage, b.String())
}

// tree is a tree of sysfs, and what node_exporter shows of it.
type tree struct {
	name, text string
	// theirName is what node_exporter calls a counter.
	theirName map[string]string
}

// rows returns the rows of a port: all of them, or only those of counters that are at their
// end.
func (r tree) rows(t *testing.T, h *state.Hardware, port *state.HardwarePort, ended bool) string {
	t.Helper()
	units := make(map[string]string)
	for _, m := range counters.Metrics() {
		units[m.Name] = m.Unit
	}
	var b strings.Builder
	row := func(metric, unit, counter string, value uint64) (theirs float64, there bool) {
		theirs, there = sample(r.text, r.theirName[counter], h.Device, port.Number)
		name, shown := "–", "–"
		if there {
			name, shown = "`"+r.theirName[counter]+"`", strconv.FormatFloat(theirs, 'f', -1, 64)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s | %s |\n", metric, unit, value, name, shown)
		return theirs, there
	}
	if !ended {
		for _, v := range counters.Of(h.Table, port.LinkLayer, port.Counters) {
			theirs, there := row(v.Metric, units[v.Metric], v.Counter, v.Value)
			if h.Table == "hfi1" && strings.HasSuffix(v.Metric, "_bytes_total") {
				theirs *= 2 // It takes the unit of hfi1, 8 bytes, for 4.
			}
			if there && theirs != float64(v.Value) {
				t.Errorf("%s: %s of %s is %d, and %v of node_exporter", r.name, v.Metric, h.Device, v.Value, theirs)
			}
		}
	}
	for _, c := range port.Counters {
		if counters.Saturated(h.Table, c) {
			row(fmt.Sprintf("rdma_port_counter_saturated{counter=%q}", c.Name), "1 or 0", c.Name, 1)
		}
	}
	return b.String()
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
