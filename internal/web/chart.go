package web

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// drawing returns an inline SVG with a name and a description for those who do not see it.
// Shapes are markup of fixed words and numbers. Text from outside goes through title.
func drawing(class string, width, height float64, name, description string, shapes ...string) template.HTML {
	const drawnAt = 1.8 // by how many times larger it is drawn, if there is room
	return template.HTML(shape(`<svg class="`+class+`" role="img" viewBox="0 0 % %" width="%">`, width, height, drawnAt*width) +
		title("title", name) + title("desc", description) + strings.Join(shapes, "") + "</svg>")
}

// shape returns markup with a number in place of each %.
func shape(markup string, numbers ...float64) string {
	for _, n := range numbers {
		markup = strings.Replace(markup, "%", strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64), 1)
	}
	return markup
}

// title returns an element with text; nothing without text.
func title(element, words string) string {
	if words == "" {
		return ""
	}
	return "<" + element + ">" + template.HTMLEscapeString(words) + "</" + element + ">"
}

// The measures of a distribution. Left and right leave room for words at either end.
const (
	chartWidth, chartHeight = 360.0, 62.0
	chartLeft, chartRight   = 30.0, 330.0
	chartTop, chartBase     = 16.0, 44.0
)

type axis struct{ from, to float64 }

// axisOf returns an axis that has room for all latencies, in whole decades.
func axisOf(latencies []state.Latency) axis {
	a := axis{math.Inf(1), math.Inf(-1)}
	for _, l := range latencies {
		for _, b := range l.Bins {
			// A bound that is a power of ten may come out a little on either side of it.
			const slack = 0.001
			a.from = min(a.from, math.Floor(math.Log10(max(b.From, 1).Seconds())+slack))
			a.to = max(a.to, math.Ceil(math.Log10(max(b.To, 1).Seconds())-slack))
		}
	}
	if a.from > a.to {
		return axis{-6, -3}
	}
	a.to = max(a.to, a.from+1)
	return a
}

func (a axis) at(d time.Duration) float64 {
	x := chartLeft + (chartRight-chartLeft)*(math.Log10(max(d, 1).Seconds())-a.from)/(a.to-a.from)
	return min(max(x, chartLeft), chartRight)
}

func tick(decade float64) string { return text.Seconds(math.Pow(10, decade)) }

func distribution(l *state.Latency, a axis) template.HTML {
	highest, samples := 0, 0
	for _, b := range l.Bins {
		highest = max(highest, b.Samples)
		samples += b.Samples
	}
	if highest == 0 {
		return ""
	}
	var shapes []string
	add := func(markup string, numbers ...float64) { shapes = append(shapes, shape(markup, numbers...)) }
	// With many decades not each has room for its time.
	step := math.Ceil((a.to - a.from) / 6)
	for decade := a.from; decade <= a.to; decade += step {
		x := a.at(time.Duration(math.Round(math.Pow(10, decade) * 1e9)))
		add(`<path class="grid" d="M % %V %"/>`, x, chartTop, chartBase)
		add(`<text class="tick" x="%" y="%">`+tick(decade)+`</text>`, x, chartHeight-4)
	}
	add(`<path class="samples" d="`)
	for _, b := range l.Bins {
		from, to := a.at(b.From), a.at(b.To)
		top := chartBase - max(1, (chartBase-chartTop)*float64(b.Samples)/float64(highest))
		add(`M % %V %H %V %z`, from, chartBase, top, max(to-0.6, from+0.6), chartBase) // A gap separates neighbours.
	}
	add(`"/><path class="base" d="M % %H %"/>`, chartLeft, chartBase, chartRight)
	if l.Count > 0 {
		p50, p99 := a.at(l.P50), a.at(l.P99)
		add(`<path class="p50" d="M % %V %"/><text class="before" x="%" y="%">p50</text>`, p50, chartTop-4, chartBase, p50-2, chartTop-5)
		add(`<path class="p99" d="M % %V %"/><text class="after" x="%" y="%">p99</text>`, p99, chartTop-4, chartBase, p99+2, chartTop-5)
	}
	first, last := l.Bins[0], l.Bins[len(l.Bins)-1]
	return drawing("distribution", chartWidth, chartHeight,
		fmt.Sprintf("Distribution of %s from %s to %s", text.Plural(samples, "sample"), text.Duration(first.From), text.Duration(last.To)),
		fmt.Sprintf("Median %s, 99th percentile %s; the scale goes from %s to %s.", text.Duration(l.P50), text.Duration(l.P99), tick(a.from), tick(a.to)),
		shapes...)
}

// The measures of the strip of completion vectors.
const (
	stripColumns                    = 32
	stripLeft, stripWidth           = 28.0, 10.0
	stripHigh, stripGap, stripMarks = 28.0, 4.0, 14.0
)

// strip draws a cell for each measured vector, the higher the longer notification takes.
func strip(v *api.Vectors) template.HTML {
	rowHeight := stripHigh + stripGap
	if len(v.Unusual) > 0 {
		rowHeight += stripMarks
	}
	var shapes []string
	add := func(markup string, numbers ...float64) { shapes = append(shapes, shape(markup, numbers...)) }
	for n, one := range v.Each {
		x, base := stripLeft+float64(n%stripColumns)*stripWidth, float64(n/stripColumns+1)*rowHeight-stripGap
		if n%stripColumns == 0 {
			add(`<text class="row" x="%" y="%">`+text.Number(one.Vector)+`</text>`, stripLeft-5, base)
		}
		class, marks, height := "usual", "", max(3, stripHigh*float64(one.P50)/float64(v.Full))
		middle, top := x+stripWidth/2, base-height-3
		if one.Slow {
			class, marks = "slow", shape(`<path class="slow" d="M % %l 3.5 -6l 3.5 6z"/>`, middle-3.5, top)
			top -= 8
		}
		if one.Wrong() {
			class = "wrong"
			marks += shape(`<path class="cross" d="M % %l 6 -6M % %l 6 6"/>`, middle-3, top, middle-3, top-6)
		}
		add(`<rect class="`+class+`" x="%" y="%" width="%" height="%">`, x+1, base-height, stripWidth-2, height)
		shapes = append(shapes, title("title", fmt.Sprintf("%d: %s", one.Vector, one)), `</rect>`, marks)
	}
	rows := (len(v.Each) + stripColumns - 1) / stripColumns
	return drawing("strip", stripLeft+float64(min(len(v.Each), stripColumns))*stripWidth, float64(rows)*rowHeight,
		"Median time of notification on each measured completion vector", v.Summary, shapes...)
}
