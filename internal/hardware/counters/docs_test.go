package counters_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// TestDocs compares docs/reference/counters.md with the table.
func TestDocs(t *testing.T) {
	golden.Check(t, "../../../docs/reference/counters.md", docs())
}

// docs returns docs/reference/counters.md.
func docs() string {
	var b strings.Builder
	b.WriteString(`# Counters

This page follows from the table in ` + "`internal/hardware/counters`; `go test ./internal/hardware/counters -update`" + ` rewrites it.

Drivers choose their own counter names and units. The metrics below mean the same for every driver, in base units; a port
has those that its driver counts. A counter feeds a metric only if its source says that it counts exactly that; a likely
match is not enough. Every counter, listed here or not, is available unchanged as
` + "`rdma_port_counter_total` and `rdma_port_hw_counter_total`" + `.

- **One source.** A metric has one source in each table. Where a driver's own counters feed it, the fields of
  ` + "`counters/`" + ` do not. If the source cannot be read, or is saturated, the metric is absent: switching to another source
  would look like a jump.
- **At maximum** a counter either stays at all ones until it is reset, as the InfiniBand specification demands of
  ` + "`counters/`" + `, or wraps to 0. A counter that stays is reported by ` + "`rdma_port_counter_saturated`" + `, and its metric is then
  absent, since its rate would always be 0. With any counter 64 ones mean this: none counts that far, and drivers
  show 64 ones when they cannot read a counter.
- **A sum** adds all counters with that metric, if all exist.
- **Levels** and peaks are not counters, though drivers list them as such, and feed no metric.

Below, each source is followed by the counters that were read there.

## Metrics

| metric | unit | | drivers |
|---|---|---|---|
`)
	for _, m := range counters.Metrics() {
		label := ""
		if m.Label != "" {
			label = ", by `" + m.Label + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s%s | %s |\n", m.Name, m.Unit, m.Help, label, feeding(m.Name))
	}
	for _, t := range counters.Tables() {
		title := t.Name
		if title == "" {
			title = "Every device"
		}
		fmt.Fprintf(&b, "\n## %s\n", title)
		if t.Note != "" {
			fmt.Fprintf(&b, "\n%s\n", t.Note)
		}
		head := "\n| counter | metric | bits | at maximum | counts |\n|---|---|---|---|---|\n"
		sources := "\n"
		for rows := range bySource(t.Rows) {
			var fed, raw, levels, never []string
			for _, r := range rows {
				name := "`" + r.Name + "`"
				switch {
				case r.Level:
					levels = append(levels, fmt.Sprintf("%s (%s)", name, strings.TrimSuffix(r.Meaning, ".")))
				case r.Meaning == "Nothing.":
					never = append(never, name)
				case r.Metric == "":
					raw = append(raw, fmt.Sprintf("%s (%s bits, %s: %s)", name, width(r), end(r), strings.TrimSuffix(r.Meaning+" "+r.Raw, ".")))
				default:
					fed = append(fed, name)
					if r.Group != state.GroupEthtool { // whose counters no file in sysfs has
						name = fmt.Sprintf("`%s/%s`", r.Group, r.Name)
					}
					fmt.Fprintf(&b, "%s| %s | %s | %s | %s | %s |\n", head, name, metric(r), width(r), end(r), meaning(r))
					head = ""
				}
			}
			sources += "- " + rows[0].Source
			for _, list := range []struct {
				title string
				names []string
			}{
				{"For", fed},
				{"Without a metric:", raw},
				{"Levels:", levels},
				{"Always 0, because the driver never sets them:", never},
			} {
				if len(list.names) > 0 {
					sources += fmt.Sprintf(" %s %s.", list.title, strings.Join(list.names, ", "))
				}
			}
			sources += "\n"
		}
		b.WriteString(sources)
	}
	return b.String()
}

// feeding returns the names of the tables that feed a metric.
func feeding(metric string) string {
	var names []string
	for _, t := range counters.Tables() {
		if slices.ContainsFunc(t.Rows, func(r counters.Row) bool { return r.Metric == metric }) {
			name := t.Name
			if name == "" {
				name = "[all](#every-device)"
			}
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// bySource yields rows that follow each other and have the same source.
func bySource(rows []counters.Row) func(func([]counters.Row) bool) {
	return func(yield func([]counters.Row) bool) {
		for len(rows) > 0 {
			n := slices.IndexFunc(rows, func(r counters.Row) bool { return r.Source != rows[0].Source })
			if n < 0 {
				n = len(rows)
			}
			if !yield(rows[:n]) {
				return
			}
			rows = rows[n:]
		}
	}
}

func metric(r counters.Row) string {
	if r.Metric == "" {
		return ""
	}
	text := "`" + r.Metric + "`"
	if r.Factor != 1 {
		text += fmt.Sprintf(" × %d", r.Factor)
	}
	if r.Divisor > 1 {
		text += fmt.Sprintf(" ÷ %d", r.Divisor)
	}
	if r.Label != "" {
		text += ", " + r.Label
	}
	switch r.LinkLayer {
	case "Ethernet":
		text += ", on Ethernet"
	case "InfiniBand":
		text += ", not on Ethernet"
	}
	if r.Sum {
		text += ", sum"
	}
	return text
}

func meaning(r counters.Row) string {
	if r.VFUncounted {
		return r.Meaning + " Absent while 0, unless the function can have virtual ones."
	}
	return r.Meaning
}

func width(r counters.Row) string {
	if r.Narrow > 0 {
		return fmt.Sprintf("%d or %d", r.Width, r.Narrow)
	}
	return fmt.Sprint(r.Width)
}

func end(r counters.Row) string {
	if r.Saturates {
		return "stays"
	}
	return "wraps"
}

var (
	// migrated is a row of the table of docs/migration.md: a counter and its metric.
	migrated = regexp.MustCompile("(?m)^\\| `node_infiniband_[a-z0-9_]+` \\| `([a-z_]+)/(\\w+)` \\| `(rdma_port_[a-z_]+)` \\|")
	// migratedRaw is a line below it about counters without a metric, and migratedName one of them.
	migratedRaw  = regexp.MustCompile("(?m)^- `([a-z_]+)/`.*: .*$")
	migratedName = regexp.MustCompile("`[a-z0-9_]+` is `(\\w+)`")
)

// TestMigration compares docs/migration.md with the counters of mlx5.
func TestMigration(t *testing.T) {
	page := running.Must(os.ReadFile("../../../docs/migration.md"))(t)
	found := make(map[state.Counter]string)
	for _, r := range migrated.FindAllStringSubmatch(string(page), -1) {
		found[state.Counter{Group: state.CounterGroup(r[1]), Name: r[2], Value: 1}] = r[3]
	}
	for _, line := range migratedRaw.FindAllStringSubmatch(string(page), -1) {
		for _, r := range migratedName.FindAllStringSubmatch(line[0], -1) {
			found[state.Counter{Group: state.CounterGroup(line[1]), Name: r[1], Value: 1}] = ""
		}
	}
	if len(found) < 50 {
		t.Fatalf("only %d counters were found", len(found))
	}
	for c, metric := range found {
		if c.Name == "port_rcv_discards" {
			continue // Linux has no such file.
		}
		want := ""
		if values := values("mlx5", "", "", c); len(values) == 1 {
			want = values[0].Metric
		}
		if metric != want {
			t.Errorf("the metric of %s/%s is %q, the page says %q", c.Group, c.Name, want, metric)
		}
	}
}

// TestTables makes sure that each row is whole, and that no metric is fed twice.
func TestTables(t *testing.T) {
	metrics := make(map[string]counters.Metric)
	for _, m := range counters.Metrics() {
		metrics[m.Name] = m
	}
	names := make(map[string]bool)
	for _, table := range counters.Tables() {
		for _, name := range append([]string{table.Name}, table.Buses...) {
			if names[name] {
				t.Errorf("two tables are of %q", name)
			}
			names[name] = true
		}
		if table.Note != "" && !strings.HasSuffix(table.Note, ".") {
			t.Errorf("%s: the note is no sentence: %s", table.Name, table.Note)
		}
		seen := make(map[string]bool)
		groups := make(map[string]state.CounterGroup)
		sums := make(map[string]bool)
		for i, r := range table.Rows {
			id := fmt.Sprintf("%s %s/%s", table.Name, r.Group, r.Name)
			if seen[id] {
				t.Errorf("%s is there twice", id)
			}
			seen[id] = true
			for _, text := range []string{r.Meaning, r.Source} {
				if !strings.HasSuffix(text, ".") || strings.ContainsAny(text, "\n|") {
					t.Errorf("%s: no sentence: %q", id, text)
				}
			}
			if (r.Metric == "") != strings.HasSuffix(r.Raw, ".") {
				t.Errorf("%s feeds %q, and does not for %q", id, r.Metric, r.Raw)
			}
			if r.Factor == 0 || r.Width < 4 || r.Width > 64 || r.Narrow >= r.Width || r.Level && (r.Metric != "" || r.Saturates) {
				t.Errorf("%s: %+v", id, r)
			}
			if r.Metric == "" {
				continue
			}
			m, ok := metrics[r.Metric]
			if !ok || (m.Label == counters.LabelPriority) != (r.Group == state.GroupEthtool && strings.Contains(r.Name, "N")) {
				t.Errorf("%s feeds %s, which is not as that", id, r.Metric)
			}
			of := r.Metric + r.LinkLayer
			if g, ok := groups[of]; ok && (g != r.Group || sums[of] != r.Sum) {
				t.Errorf("%s: %s has another source, too", id, r.Metric)
			}
			groups[of], sums[of] = r.Group, r.Sum
			if (m.Label != "" && m.Label != counters.LabelPriority) != (r.Label != "") || r.LinkLayer != "" && r.LinkLayer != "Ethernet" && r.LinkLayer != "InfiniBand" {
				t.Errorf("%s: the label %q, the link layer %q", id, r.Label, r.LinkLayer)
			}
			if i > 0 && r.Sum && table.Rows[i-1].Metric != r.Metric && slices.ContainsFunc(table.Rows[:i], func(o counters.Row) bool { return o.Metric == r.Metric }) {
				t.Errorf("%s is apart from the other terms of the sum", id)
			}
		}
	}
}

// TestMetrics makes sure that the metrics are as Prometheus would have them.
func TestMetrics(t *testing.T) {
	units := []string{"bytes", "packets", "errors", "ticks", "timeouts", "recoveries", "events", "frames", "blocks", "bits", "seconds", "storms", "transitions", "requests", "retransmissions"}
	seen := make(map[string]bool)
	for _, m := range counters.Metrics() {
		if seen[m.Name] {
			t.Errorf("%s is there twice", m.Name)
		}
		seen[m.Name] = true
		if !strings.HasPrefix(m.Name, "rdma_port_") || !strings.HasSuffix(m.Name, "_total") || strings.Trim(m.Name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("%s is no name of a counter of a port", m.Name)
		}
		if !slices.Contains(units, m.Unit) || m.Help == "" || strings.HasSuffix(m.Help, ".") {
			t.Errorf("not whole: %+v", m)
		}
		if feeding(m.Name) == "" {
			t.Errorf("nothing feeds %s", m.Name)
		}
	}
}
