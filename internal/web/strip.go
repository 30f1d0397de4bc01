package web

import (
	"fmt"
	"html/template"
	"math"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// The measures of the strip of completion vectors.
const (
	stripColumns          = 32
	stripLeft, stripWidth = 28.0, 10.0
	// stripHigh is the height of the highest cell, stripGap what lies below it, and
	// stripMarks above, if there are any marks.
	stripHigh, stripGap, stripMarks = 28.0, 4.0, 14.0
)

// vectorsView is how notification is on each completion vector.
type vectorsView struct {
	Strip template.HTML
	// Measured is how many of All vectors were measured.
	Measured, All int
	// Odd are those that are slow or on which something went wrong.
	Odd []api.Vector
	// Each are those that were measured.
	Each []api.Vector
	// Usual is what is usual by state.UsualLatency, if it is known and all vectors were
	// measured on one port and path: else there is no one figure. Full is what a cell of
	// full height stands for. Both are in seconds.
	Usual, Full float64
}

// vectorsOf returns nil for a device of which no vector was measured.
func vectorsOf(d *api.Device) *vectorsView {
	if len(d.Vectors) == 0 {
		return nil
	}
	v := &vectorsView{Measured: len(d.Vectors), Each: d.Vectors}
	type way struct {
		port int
		path state.LatencyPath
	}
	ways := make(map[way]float64)
	for _, one := range d.Vectors {
		v.All = max(v.All, one.Number+1)
		if one.Slow || one.Wrong > 0 {
			v.Odd = append(v.Odd, one)
		}
		if one.Samples > 0 {
			ways[way{one.Port, one.Path}] = one.Usual
		}
		// Vectors that are about as quick as each other have low cells: one that is slow
		// stands out, and none stands out that is not.
		v.Full = max(v.Full, one.P50, slowFrom(one.Usual))
	}
	if d.Identity != nil {
		v.All = max(v.All, d.Identity.CompletionVectors)
	}
	if len(ways) == 1 {
		for _, usual := range ways {
			v.Usual = usual
		}
	}
	v.Strip = v.strip()
	return v
}

// slowFrom returns from which median on a vector is slow where some time is usual; 0
// where none is.
func slowFrom(usual float64) float64 {
	if usual <= 0 {
		return 0
	}
	const longest = float64(math.MaxInt64 / int64(time.Second))
	return state.SlowFrom(time.Duration(min(usual, longest) * float64(time.Second))).Seconds()
}

// Undrawn says which vectors the strip leaves out; empty if none.
func (v *vectorsView) Undrawn() string {
	switch {
	case v.All <= state.MaxVectors:
		return ""
	case v.All == state.MaxVectors+1:
		return fmt.Sprintf("Vector %d is not drawn.", state.MaxVectors)
	default:
		return fmt.Sprintf("Vectors %d to %d are not drawn.", state.MaxVectors, v.All-1)
	}
}

// strip draws one cell for each vector, the higher the longer notification takes.
func (v *vectorsView) strip() template.HTML {
	byNumber := make(map[int]*api.Vector, len(v.Each))
	for i := range v.Each {
		byNumber[v.Each[i].Number] = &v.Each[i]
	}
	cells := min(v.All, state.MaxVectors)
	rows := (cells + stripColumns - 1) / stripColumns
	rowHeight := stripHigh + stripGap
	if len(v.Odd) > 0 {
		rowHeight += stripMarks
	}
	d := newDrawing("strip", stripLeft+float64(min(cells, stripColumns))*stripWidth, float64(rows)*rowHeight,
		"Median time of notification on each completion vector", v.Summary())
	for n := range cells {
		x := stripLeft + float64(n%stripColumns)*stripWidth
		base := float64(n/stripColumns+1)*rowHeight - stripGap
		if n%stripColumns == 0 {
			d.tag(`<text class="row" x=`, stripLeft-5, ` y=`, base, `>`+text.Number(n)+`</text>`)
		}
		one := byNumber[n]
		class, height, words := cell(one, n)
		if one != nil && v.Full > 0 {
			height = max(height, stripHigh*one.P50/v.Full)
		}
		d.tag(`<rect class="`+class+`" x=`, x+1, ` y=`, base-height, ` width=`, stripWidth-2, ` height=`, height, `>`)
		d.text("title", words)
		d.tag(`</rect>`)
		middle, top := x+stripWidth/2, base-height-3
		if one != nil && one.Slow {
			d.tag(`<path class="slow" d="M`, middle-3.5, top, `L`, middle, top-6, `L`, middle+3.5, top, `z"/>`)
			top -= 8
		}
		if one != nil && one.Wrong > 0 {
			d.tag(`<path class="cross" d="M`, middle-3, top, `l 6 -6M`, middle-3, top-6, `l 6 6"/>`)
		}
	}
	return d.html()
}

// cell returns how the cell of a vector, which is nil if it was not measured, looks
// at least, and what it says.
func cell(v *api.Vector, n int) (class string, height float64, words string) {
	switch {
	case v == nil:
		return "none", 5, fmt.Sprintf("%d: not measured yet", n)
	case v.Wrong > 0:
		class = "wrong"
	case v.Slow:
		class = "slow"
	default:
		class = "usual"
	}
	return class, 3, fmt.Sprintf("%d: %s", n, times(v))
}

// times returns what was measured on a vector.
func times(v *api.Vector) string {
	words := "nothing went well"
	if v.Samples > 0 {
		words = fmt.Sprintf("median %s, p99 %s", text.Seconds(v.P50), text.Seconds(v.P99))
	}
	if v.Slow {
		words += ", slow"
	}
	if v.Wrong > 0 {
		words += ", " + text.Count(v.Wrong, "event or completion", "events or completions") + " went wrong"
	}
	return words
}

// Summary returns what the strip shows.
func (v *vectorsView) Summary() string {
	slow, wrong := 0, 0
	for _, one := range v.Odd {
		if one.Slow {
			slow++
		}
		if one.Wrong > 0 {
			wrong++
		}
	}
	s := fmt.Sprintf("%s of %d measured", text.Number(v.Measured), v.All)
	if v.Usual > 0 {
		s += ", usually " + text.Seconds(v.Usual)
	}
	if slow > 0 {
		s += fmt.Sprintf("; %d slow", slow)
	}
	if wrong > 0 {
		s += fmt.Sprintf("; %d with errors", wrong)
	}
	return s + "."
}
