package peers

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// report is a list of tables.
type report struct{ tables []*table }

// table compares the exporter with a peer.
type table struct {
	title, peer string
	rows        []*row
}

// row is one quantity in one situation. It has one value for each run; theirs is empty if
// the peer has nothing to compare with.
type row struct {
	situation, quantity string
	ours, theirs        []float64
}

// table returns the table of a title. It adds one if there is none.
func (r *report) table(title, peer string) *table {
	for _, t := range r.tables {
		if t.title == title {
			return t
		}
	}
	t := &table{title: title, peer: peer}
	r.tables = append(r.tables, t)
	return t
}

// add adds the measurement of one run.
func (t *table) add(situation, quantity string, ours float64, theirs ...float64) {
	for _, r := range t.rows {
		if r.situation == situation && r.quantity == quantity {
			r.ours, r.theirs = append(r.ours, ours), append(r.theirs, theirs...)
			return
		}
	}
	t.rows = append(t.rows, &row{situation, quantity, []float64{ours}, theirs})
}

// addCosts adds the medians of costs that were measured in one run.
func (t *table) addCosts(situation string, ours, theirs []cost) {
	medianOf := func(all []cost, of func(cost) float64) float64 {
		var values []float64
		for _, c := range all {
			values = append(values, of(c))
		}
		return median(values)
	}
	wall := func(c cost) float64 { return c.wall.Seconds() * 1e3 }
	cpu := func(c cost) float64 { return c.cpu.Seconds() * 1e3 }
	t.add(situation, "time, ms", medianOf(ours, wall), medianOf(theirs, wall))
	t.add(situation, "CPU, ms", medianOf(ours, cpu), medianOf(theirs, cpu))
}

// print prints the tables in Markdown. Each value is the median of all runs, with minimum
// and maximum in brackets.
func (r *report) print(w io.Writer) {
	for _, t := range r.tables {
		fmt.Fprintf(w, "\n**%s**\n\n| situation | quantity | rdma_exporter | %s | ratio |\n|---|---|--:|--:|--:|\n", t.title, t.peer)
		for _, row := range t.rows {
			ratio := "–"
			if len(row.theirs) > 0 && median(row.theirs) != 0 {
				ratio = number(median(row.ours) / median(row.theirs))
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", row.situation, row.quantity, spread(row.ours), spread(row.theirs), ratio)
		}
	}
	fmt.Fprintln(w)
}

func spread(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	if len(values) == 1 {
		return number(values[0])
	}
	return fmt.Sprintf("%s (%s–%s)", number(median(values)), number(slices.Min(values)), number(slices.Max(values)))
}

// number formats a value with three significant digits, or all that are before the point.
func number(f float64) string {
	digits := 0
	for limit := 100.0; f != 0 && f < limit && digits < 4; limit /= 10 {
		digits++
	}
	s := strconv.FormatFloat(f, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
