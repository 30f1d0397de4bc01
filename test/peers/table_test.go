//go:build vm

package peers

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// report is a list of tables.
type report struct{ tables []*table }

// table compares the exporter with a peer.
type table struct {
	title, peer string
	rows        []*row
}

// row is one quantity in one situation, measured some times of both. Where there is
// no peer, theirs is empty.
type row struct {
	situation, quantity, unit string
	ours, theirs              []float64
}

// table returns the table of a title, a new one if there is none.
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

// add adds a measurement of both to the row of a quantity in a situation.
func (t *table) add(situation, quantity, unit string, ours float64, theirs ...float64) {
	for _, r := range t.rows {
		if r.situation == situation && r.quantity == quantity {
			r.ours, r.theirs = append(r.ours, ours), append(r.theirs, theirs...)
			return
		}
	}
	t.rows = append(t.rows, &row{situation, quantity, unit, []float64{ours}, theirs})
}

// print prints the tables in Markdown. Each figure is a median, with the least and
// the most of the runs in brackets where they differ.
func (r *report) print(w io.Writer) {
	for _, t := range r.tables {
		fmt.Fprintf(w, "\n**%s**\n\n| situation | quantity | rdma_exporter | %s | ratio |\n|---|---|--:|--:|--:|\n", t.title, t.peer)
		for i, row := range t.rows {
			situation, quantity := row.situation, row.quantity
			if row.unit != "" {
				quantity += ", " + row.unit
			}
			if i > 0 && t.rows[i-1].situation == situation {
				situation = ""
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", situation, quantity, spread(row.ours), spread(row.theirs), ratio(row.ours, row.theirs))
		}
	}
	fmt.Fprintln(w)
}

// spread is the median of some figures and their range.
func spread(figures []float64) string {
	if len(figures) == 0 {
		return "–"
	}
	middle, least, most := number(median(figures)), number(slices.Min(figures)), number(slices.Max(figures))
	if least == most {
		return middle
	}
	return fmt.Sprintf("%s (%s–%s)", middle, least, most)
}

func ratio(ours, theirs []float64) string {
	if len(theirs) == 0 || median(theirs) == 0 {
		return "–"
	}
	return number(median(ours) / median(theirs))
}

// number writes a figure with as many digits as are of use.
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

// median returns the one in the middle of at least one figure, of an even number of
// them the mean of the two.
func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func TestTable(t *testing.T) {
	var r report
	one := r.table("Scrapes", "node_exporter")
	one.add("8 devices", "CPU", "ms", 3)
	r.table("Scrapes", "node_exporter").add("8 devices", "series", "", 6094, 51)
	one.add("8 devices", "CPU", "ms", 1)
	one.add("8 devices", "CPU", "ms", 2)
	one.add("64 devices", "CPU", "ms", 0.01234, 0.5)
	var text strings.Builder
	r.print(&text)
	want := `
**Scrapes**

| situation | quantity | rdma_exporter | node_exporter | ratio |
|---|---|--:|--:|--:|
| 8 devices | CPU, ms | 2 (1–3) | – | – |
|  | series | 6094 | 51 | 119 |
| 64 devices | CPU, ms | 0.0123 | 0.5 | 0.0247 |

`
	if text.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", text.String(), want)
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("the median of 1, 2, 3 and 4 is %v", got)
	}
}
