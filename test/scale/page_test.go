//go:build scale

package scale_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
