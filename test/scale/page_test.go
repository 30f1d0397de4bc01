//go:build scale

package scale_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// follows compares parts of the page, between the comments that name them, with what
// follows from the rest; with -update it writes them.
func follows(t *testing.T, parts map[string]string) {
	t.Helper()
	for name, want := range parts {
		golden.CheckPart(t, page, fmt.Sprintf("<!-- %s: written by go test -tags scale ./test/scale -update -->", name), fmt.Sprintf("<!-- end of %s -->", name), "\n"+want+"\n")
	}
}

// tableOf returns a table.
func tableOf(headings []string, rows [][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(headings, " | "), strings.Repeat("---|", len(headings)))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r, " | "))
	}
	return b.String()
}

// thousands writes a number so that people can read it.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// totals returns the sums of the rows of the formula, by symbol.
func totals(f formula) string {
	flags := []string{"", withoutContracts, withoutInventories, withoutHardware, withoutOwn, onlyWith}
	sums := make(map[string]expression)
	for _, r := range f.rows {
		flag := r.not
		if r.only != "" {
			flag = onlyWith
		}
		if sums[flag] == nil {
			sums[flag] = make(expression)
		}
		sums[flag].add(r.total(), 1)
	}
	var rows [][]string
	for _, symbol := range append([]string{""}, f.symbols...) {
		cells := []string{symbol}
		if symbol == "" {
			cells[0] = "the exporter itself"
		}
		for _, flag := range flags {
			n := ""
			if sums[flag][symbol] > 0 {
				n = strconv.Itoa(sums[flag][symbol])
			}
			cells = append(cells, n)
		}
		rows = append(rows, cells)
	}
	return tableOf([]string{"for each", "always", "not with `" + withoutContracts + "`", "not with `" + withoutInventories + "`", "not with `" + withoutHardware + "`", "not with `" + withoutOwn + "`", "with every collector that is off by default"}, rows)
}

// of returns how many series of a host are in the rows of these metrics.
func of(f formula, h *host, names ...string) int {
	sum := 0
	for _, r := range f.rows {
		for _, name := range names {
			if r.has(name) && r.holds(h.shape) {
				sum += r.total().value(h.counts)
			}
		}
	}
	return sum
}

// examples returns the number of series of the hosts that were scraped.
func examples(f formula, hosts []*host) string {
	var rows [][]string
	for _, h := range hosts {
		rows = append(rows, []string{
			h.name, thousands(h.want),
			thousands(of(f, h, "rdma_verbs_call_duration_seconds", "rdma_verbs_call_latency_seconds")),
			thousands(of(f, h, "rdma_notification_latency_seconds", "rdma_completion_latency_seconds")),
			thousands(of(f, h, "rdma_notification_vector_latency_seconds")),
		})
	}
	return tableOf([]string{"node", "series", "of the time of verbs", "of latency", "of vectors"}, rows)
}

// typicalName is the name of the shape that examples are about.
const typicalName = "8 devices, 16 vectors"

// typical returns the host that examples are about.
func typical(hosts []*host) *host {
	return hosts[slices.IndexFunc(hosts, func(h *host) bool { return h.name == typicalName })]
}

// checkSizes makes sure that a series takes as many bytes of the exposition as the page
// says.
func checkSizes(t *testing.T, text string, h *host) {
	t.Helper()
	m := regexp.MustCompile(`takes (\d+) to (\d+) bytes in an exposition, and (\d+) to (\d+) compressed`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("docs/reference/scaling.md does not say how many bytes a series takes")
	}
	for i, size := range []int{h.plain, h.compressed} {
		least, _ := strconv.ParseFloat(m[1+2*i], 64)
		most, _ := strconv.ParseFloat(m[2+2*i], 64)
		if each := float64(size) / float64(len(h.samples)); each < least || each > most {
			t.Errorf("%s: a series takes %.1f bytes, docs/reference/scaling.md says %v to %v", h.name, each, least, most)
		}
	}
}

// measured returns a figure of the page's table of those that were measured.
func measured(t *testing.T, text, what string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(what) + ` \| ([0-9.]+)`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("docs/reference/scaling.md does not have the figure %q", what)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// projection returns what larger fleets cost, by the formula and by what was measured.
func projection(t *testing.T, text string, f formula) string {
	t.Helper()
	verbs := readVerbs(t, text)
	memory := measured(t, text, "resident memory for each series")
	taken, scraped := measured(t, text, "samples taken in a second"), measured(t, text, "processor time of Prometheus")
	chunk, index := measured(t, text, "chunks, for each sample"), measured(t, text, "index, for each series")
	var rows [][]string
	for _, nodes := range []int{200, 1000, 10000} {
		for _, s := range []shape{
			{name: typicalName, devices: times(8, adapter(16)), owners: 10},
			{name: "8 devices, 64 vectors", devices: times(8, adapter(64)), owners: 10},
		} {
			series := float64(nodes * f.series(s, s.counts(verbs)))
			for _, interval := range []float64{30, 60} {
				samples := series / interval
				rows = append(rows, []string{
					thousands(nodes), s.name, fmt.Sprintf("%.1f", series/1e6), fmt.Sprintf("%.0f s", interval), thousands(int(samples)),
					fmt.Sprintf("%.0f", series*memory/(1<<30)), fmt.Sprintf("%.1f", samples*scraped/taken),
					fmt.Sprintf("%.0f", (samples*86400*chunk+series*index)/1e9),
				})
			}
		}
	}
	return tableOf([]string{"nodes", "each with", "series, millions", "scraped every", "samples in a second", "memory, GiB", "processors", "disk for a day, GB"}, rows)
}

// evaluation returns how long the groups of rules take for larger fleets: what was
// measured, times the number of nodes.
func evaluation(t *testing.T, text string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\| nodes with exactly so many \| \d+ of (\d+);`).FindStringSubmatch(text)
	groups := regexp.MustCompile(`(?m)^\| (rdma_exporter_[a-z]+) \| (\d+) \| ([0-9.]+) \| ([0-9.]+) \|$`).FindAllStringSubmatch(text, -1)
	if m == nil || len(groups) < 5 {
		t.Fatal("docs/reference/scaling.md does not have the table of the groups of rules")
	}
	number := func(s string) float64 {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	nodes := number(m[1])
	var rows [][]string
	for _, g := range groups {
		every, average, most := number(g[2]), number(g[3])/1e3/nodes, number(g[4])/1e3/nodes
		// To a hundred: it is no more exact.
		ceiling := "more"
		if n := 100 * int(every/most/100); n <= 50000 {
			ceiling = thousands(n)
		}
		rows = append(rows, []string{
			"`" + g[1] + "`", g[2] + " s", fmt.Sprintf("%.1f s", 1000*average), fmt.Sprintf("%.0f s", 10000*average), ceiling,
		})
	}
	return tableOf([]string{"group of rules", "every", "1 000 nodes", "10 000 nodes", "its slowest takes as long as its interval at, nodes"}, rows)
}

// blocks returns the blocks of YAML of the page.
func blocks(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// TestConfigurations has promtool judge the configurations of Prometheus on the page.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	promtool := running.FindPrometheus(t, "promtool")
	all := blocks(readPage(t))
	if len(all) < 4 {
		t.Fatalf("docs/reference/scaling.md has %d blocks of YAML", len(all))
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "rdma_exporter"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join(repository, "alerts", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "rdma_exporter", name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, block := range all {
		path := filepath.Join(dir, fmt.Sprintf("block%d.yml", i))
		if err := os.WriteFile(path, []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"check", "config", "--lint-fatal"}
		switch {
		case strings.HasPrefix(block, "# rules"):
			args = []string{"check", "rules", "--lint-fatal"}
		case strings.Contains(block, "agent"):
			args = append(args, "--agent")
		}
		if out, err := exec.CommandContext(t.Context(), promtool, append(args, path)...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s\n%s", strings.Join(args, " "), err, out, block)
		}
	}
}
