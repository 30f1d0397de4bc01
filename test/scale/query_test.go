//go:build scale

package scale_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
)

// panel is what is asked for a panel of a dashboard.
type panel struct {
	Type     string  `json:"type"`
	Title    string  `json:"title"`
	Interval string  `json:"interval"`
	Panels   []panel `json:"panels"`
	Targets  []struct {
		Expr    string `json:"expr"`
		Instant bool   `json:"instant"`
		RefID   string `json:"refId"`
	} `json:"targets"`
}

// readPanels returns the panels of a dashboard, those of rows too.
func readPanels(t testing.TB, name string) []panel {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "dashboards", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var all []panel
	for _, p := range board.Panels {
		all = append(append(all, p), p.Panels...)
	}
	return all
}

const (
	// shown is the time that the dashboards show at first.
	shown = 6 * time.Hour
	// standsOut is the panel whose expressions are the longest.
	standsOut = "Devices in trouble, worst first"
	// repeated is how often an expression is timed; the median counts.
	repeated = 3
)

// timed is how long an expression took, in seconds.
type timed struct {
	panel string
	// took is over the data that there are; shown is over 6 hours of such data.
	took, shown float64
	series      int
}

// timeDashboards prints how long the expressions of the dashboards take.
func (f *fleet) timeDashboards(b *testing.B) {
	b.Helper()
	span := time.Since(f.since)
	var slowest []timed
	fmt.Println()
	heading("dashboard", "expressions", "p50, ms", "most, ms", "all together, s", "with 6 h of data, s")
	for _, name := range []string{"rdma-fleet", "rdma-device", "rdma-resources"} {
		var all []timed
		for _, p := range readPanels(b, name) {
			for _, target := range p.Targets {
				one := f.timeExpression(b, name, p, target.Expr, target.Instant, span)
				one.panel = fmt.Sprintf("%s: %s/%s", name, p.Title, target.RefID)
				all = append(all, one)
			}
		}
		var took []float64
		sum, later := 0.0, 0.0
		for _, one := range all {
			took = append(took, one.took)
			sum += one.took
			later += one.shown
		}
		fmt.Printf("| %s | %d | %.1f | %.1f | %.2f | %.2f |\n", name, len(all), 1e3*quantile(took, 0.5), 1e3*slices.Max(took), sum, later)
		slowest = append(slowest, all...)
		if name == "rdma-fleet" {
			sum := 0.0
			for _, one := range all {
				if regexp.MustCompile(regexp.QuoteMeta(standsOut)).MatchString(one.panel) {
					sum += one.took
				}
			}
			defer fmt.Printf("\nOf the fleet's expressions those of the table %q take %.2f s.\n", standsOut, sum)
		}
	}
	f.timeSamples(b)
	fmt.Println()
	heading("the slowest expressions", "ms", "series")
	slices.SortFunc(slowest, func(x, y timed) int { return cmp.Compare(y.took, x.took) })
	for _, one := range slowest[:min(len(slowest), 15)] {
		fmt.Printf("| %s | %.1f | %d |\n", one.panel, 1e3*one.took, one.series)
	}
}

// timeSamples prints what a sample costs that a rule or a panel looks back at: how much
// longer it takes to look at all samples of many series than at their last.
func (f *fleet) timeSamples(b *testing.B) {
	b.Helper()
	const metric = "rdma_probe_qp_work_requests_actual"
	within := fmt.Sprintf("[%ds]", int(time.Since(f.since).Seconds()))
	samples := f.one(b, "sum(count_over_time("+metric+within+"))")
	// Of many: what else goes on meanwhile only makes it longer.
	least := func(expr string) float64 {
		took := math.Inf(1)
		for range 10 * repeated {
			_, d, err := f.ask("query", url.Values{"query": {expr}})
			if err != nil {
				b.Fatalf("%s: %v", expr, err)
			}
			took = min(took, d.Seconds())
		}
		return took
	}
	extra := least("count(min_over_time("+metric+within+"))") - least("count("+metric+")")
	fmt.Println()
	heading("looking back", "value")
	line("samples of "+metric, "%.0f", samples)
	line("a sample in min_over_time", "%.0f ns", 1e9*extra/samples)
}

// timeExpression returns how long an expression takes: over the time shown if it is a
// graph, of which there are data for a span only.
func (f *fleet) timeExpression(b *testing.B, board string, p panel, expr string, instant bool, span time.Duration) timed {
	b.Helper()
	step := max(*fleetScrape, shown/1000)
	if p.Interval != "" {
		least, err := time.ParseDuration(p.Interval)
		if err != nil {
			b.Fatalf("%s: %s: %v", board, p.Title, err)
		}
		step = max(step, least)
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }
	values := map[string]string{
		"job": job, "instance": f.exporters[0].address, "device": "sim0", "type": ".+", "top": "10",
		"__rate_interval": seconds(max(4**fleetScrape, step+*fleetScrape)), "__range": seconds(shown), "__interval": seconds(step),
	}
	if board == "rdma-fleet" {
		values["instance"], values["device"] = ".*", ".+"
	}
	expr = regexp.MustCompile(`\$\{?(\w+)\}?`).ReplaceAllStringFunc(expr, func(found string) string {
		name := regexp.MustCompile(`\w+`).FindString(found)
		if _, err := strconv.Atoi(name); err == nil {
			return found // a group of label_replace
		}
		value, ok := values[name]
		if !ok {
			b.Fatalf("%s: %s: nobody taught the test the variable %s", board, p.Title, name)
		}
		return value
	})
	parameters, path := url.Values{"query": {expr}}, "query"
	if !instant {
		now := time.Now().Truncate(step)
		path = "query_range"
		parameters.Set("start", strconv.FormatInt(now.Add(-shown).Unix(), 10))
		parameters.Set("end", strconv.FormatInt(now.Unix(), 10))
		parameters.Set("step", strconv.Itoa(int(step.Seconds())))
	}
	var took []float64
	one := timed{}
	for range repeated {
		found, d, err := f.ask(path, parameters)
		if err != nil {
			b.Errorf("%s: %s: %v", board, p.Title, err)
		}
		took = append(took, d.Seconds())
		one.series = len(found)
	}
	one.took = quantile(took, 0.5)
	one.shown = one.took
	if !instant {
		one.shown *= max(1, shown.Seconds()/span.Seconds())
	}
	return one
}
