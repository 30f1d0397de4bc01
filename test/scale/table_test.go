//go:build scale

package scale_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readPage returns the page.
func readPage(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// table returns the cells of the rows of the page's table with these headings.
func table(t testing.TB, page string, headings ...string) [][]string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n| "+strings.Join(headings, " | ")+" |\n")
	if !ok {
		t.Fatalf("docs/reference/scaling.md has no table with the headings %q", headings)
	}
	var rows [][]string
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != len(headings) {
			t.Fatalf("docs/reference/scaling.md: %q has %d cells, want %d", line, len(cells), len(headings))
		}
		if !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
	}
	return rows
}

// quoted returns what is in backquotes.
func quoted(cell string) []string {
	var all []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// expression is a sum: how many series there are for each of what a symbol counts. The
// empty symbol is of the exporter itself.
type expression map[string]int

// parseExpression parses a sum such as 48·F + R + 2.
func parseExpression(text string) (expression, error) {
	e := make(expression)
	for term := range strings.SplitSeq(text, "+") {
		m := regexp.MustCompile(`^\s*(\d*)·?([A-Za-z]?)\s*$`).FindStringSubmatch(term)
		if m == nil || m[1]+m[2] == "" {
			return nil, fmt.Errorf("%q is no sum of terms such as 48·F", text)
		}
		n := 1
		if m[1] != "" {
			var err error
			if n, err = strconv.Atoi(m[1]); err != nil {
				return nil, fmt.Errorf("%q: %w", text, err)
			}
		}
		e[m[2]] += n
	}
	return e, nil
}

func (e expression) add(o expression, times int) {
	for symbol, n := range o {
		e[symbol] += n * times
	}
}

// value returns the sum for what is counted.
func (e expression) value(counts map[string]int) int {
	sum := e[""]
	for symbol, n := range e {
		if symbol != "" {
			sum += n * counts[symbol]
		}
	}
	return sum
}

// The flags without which rows of the formula do not hold.
const (
	withoutContracts   = "--contract.interval=0"
	withoutInventories = "--inventory.interval=0"
	withoutHardware    = "--hardware.interval=0"
	withoutOwn         = "--web.disable-exporter-metrics"
)

// row is a row of the formula.
type row struct {
	// metrics are names of metrics, or what they begin with if it ends with an asterisk.
	metrics []string
	// together tells that series is of all of them in common, not of each.
	together bool
	series   expression
	// not is the flag with which there are none, and only the one without which there are none.
	not, only string
}

// onlyWith begins a cell that names the flag of a collector that is off by default.
const onlyWith = "all without "

// total returns the series of all metrics.
func (r row) total() expression {
	e := make(expression)
	if r.together {
		e.add(r.series, 1)
	} else {
		e.add(r.series, len(r.metrics))
	}
	return e
}

// formula is the number of series of a node.
type formula struct {
	rows []row
	// symbols are what rows may count, in the order in which the page explains them.
	symbols []string
}

// readFormula reads the formula of the page. Each symbol must be explained there.
func readFormula(t testing.TB, page string) formula {
	t.Helper()
	var f formula
	for _, cells := range table(t, page, "symbol", "what it counts, over the whole node") {
		f.symbols = append(f.symbols, cells[0])
	}
	for _, cells := range table(t, page, "metrics", "series", "none with") {
		series, err := parseExpression(cells[1])
		if err != nil {
			t.Fatalf("docs/reference/scaling.md: %v", err)
		}
		for symbol := range series {
			if symbol != "" && !slices.Contains(f.symbols, symbol) {
				t.Errorf("docs/reference/scaling.md counts %s and does not say what it is", symbol)
			}
		}
		r := row{metrics: quoted(cells[0]), together: strings.Contains(cells[0], " or "), series: series}
		if flag, off := strings.CutPrefix(cells[2], onlyWith); off {
			r.only = strings.Trim(flag, "`")
		} else {
			r.not = strings.Trim(cells[2], "`")
		}
		if len(r.metrics) == 0 || r.only != "" && !slices.Contains(further(), r.only) || !slices.Contains([]string{"", withoutContracts, withoutInventories, withoutHardware, withoutOwn}, r.not) {
			t.Fatalf("docs/reference/scaling.md: nobody taught the test the row %q", cells)
		}
		f.rows = append(f.rows, r)
	}
	return f
}

// holds tells whether a row holds for a shape.
func (r row) holds(s shape) bool {
	if r.only != "" {
		return s.everything && !s.noInventories
	}
	switch r.not {
	case withoutContracts:
		return !s.noContracts
	case withoutInventories:
		return !s.noInventories
	case withoutHardware:
		return !s.noHardware
	case withoutOwn:
		return !s.noOwnMetrics
	}
	return true
}

// has tells whether a row is of a metric.
func (r row) has(metric string) bool {
	return slices.ContainsFunc(r.metrics, func(name string) bool {
		prefix, open := strings.CutSuffix(name, "*")
		return name == metric || open && strings.HasPrefix(metric, prefix)
	})
}

// series returns how many series a shape has, by the formula.
func (f formula) series(s shape, counts map[string]int) int {
	sum := 0
	for _, r := range f.rows {
		if r.holds(s) {
			sum += r.total().value(counts)
		}
	}
	return sum
}

// verbSets are the verbs that are called, by the condition for it.
type verbSets map[string][]string

// The conditions, in the words of the page.
const (
	calledAlways    = "always"
	calledSRQ       = "the device has SRQs"
	calledCompleted = "completions are measured or contracts judged"
	calledAddressed = "completions are measured or contracts judged, and the device does not speak iWARP"
	calledPartition = "completions are measured or contracts judged, and the ports are InfiniBand"
	calledReceived  = "contracts are judged, or completions measured on a port that reaches itself"
	calledJudged    = "contracts are judged"
	calledJudgedSRQ = "contracts are judged, and the device has SRQs"

	// calledControl is no condition: these are the control verbs.
	calledControl = ""
)

// readVerbs reads which verbs are called on a device.
func readVerbs(t testing.TB, page string) verbSets {
	t.Helper()
	sets := make(verbSets)
	for _, cells := range table(t, page, "verbs", "called if") {
		sets[cells[1]] = quoted(cells[0])
	}
	control := controlVerbs(t, page)
	want := []string{calledAlways, calledSRQ, calledCompleted, calledAddressed, calledPartition, calledReceived, calledJudged, calledJudgedSRQ}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(sets)); !slices.Equal(got, want) {
		t.Fatalf("docs/reference/scaling.md: verbs are called if %q, want %q", got, want)
	}
	sets[calledControl] = control
	return sets
}

// called returns the verbs that are called on a device.
func (v verbSets) called(s shape, d device, loopback int) map[string]bool {
	judged, completed := !s.noContracts, !s.noContracts || !s.noMeasurements
	verbs := make(map[string]bool)
	for condition, holds := range map[string]bool{
		calledAlways:    true,
		calledSRQ:       !d.noSRQ,
		calledCompleted: completed,
		calledAddressed: completed && d.like != "sim_siw0",
		calledPartition: completed && d.like != "sim_siw0",
		calledReceived:  judged || !s.noMeasurements && loopback > 0,
		calledJudged:    judged,
		calledJudgedSRQ: judged && !d.noSRQ,
	} {
		if holds {
			for _, verb := range v[condition] {
				verbs[verb] = true
			}
		}
	}
	return verbs
}

// controlVerbs returns the verbs whose time is told by default, by the page.
func controlVerbs(t testing.TB, page string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "C is the number of these that are called: ")
	if !ok {
		t.Fatal("docs/reference/scaling.md does not say which verbs count for C")
	}
	line, _, _ := strings.Cut(rest, "\n")
	return quoted(line)
}
