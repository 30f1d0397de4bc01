package web

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/text"
)

// drawing is an inline SVG, of numbers and fixed words alone: text from outside goes
// through text. Its style is that of the page's classes.
type drawing struct{ strings.Builder }

// newDrawing begins a picture with a name and a description for those who do not see
// it.
func newDrawing(class string, width, height float64, title, description string) *drawing {
	d := new(drawing)
	d.tag(`<svg class="`+class+`" role="img" viewBox="0 0`, width, height, `" width=`, drawnAt*width, `>`)
	d.text("title", title)
	if description != "" {
		d.text("desc", description)
	}
	return d
}

// drawnAt is by how many times larger a picture is drawn, if there is room.
const drawnAt = 1.8

// tag adds fixed markup. A number after one that ends in = is the value of an
// attribute, and in quotes; another has a space before it.
func (d *drawing) tag(parts ...any) {
	quoted := false
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			d.WriteString(p)
			quoted = strings.HasSuffix(p, "=")
		case float64:
			n := strconv.FormatFloat(math.Round(p*10)/10, 'f', -1, 64)
			if quoted {
				n = `"` + n + `"`
			} else {
				n = " " + n
			}
			d.WriteString(n)
			quoted = false
		}
	}
}

// text adds an element with text.
func (d *drawing) text(element, text string) {
	d.WriteString("<" + element + ">" + template.HTMLEscapeString(text) + "</" + element + ">")
}

func (d *drawing) html() template.HTML {
	d.WriteString("</svg>")
	return template.HTML(d.String())
}

// The measures of the picture of a distribution.
const (
	chartWidth, chartHeight = 360.0, 62.0
	// chartLeft and chartRight leave room for what is written at either end.
	chartLeft, chartRight = 30.0, 330.0
	// chartTop and chartBase are the ends of the highest column.
	chartTop, chartBase = 16.0, 44.0
)

// axis is a scale of times on which each decade has the same length.
type axis struct{ from, to float64 } // powers of ten

// axisOf returns an axis that has room for all latencies, in whole decades.
func axisOf(latencies []api.Latency) axis {
	from, to := math.Inf(1), math.Inf(-1)
	take := func(seconds float64) {
		if seconds > 0 {
			from, to = min(from, math.Log10(seconds)), max(to, math.Log10(seconds))
		}
	}
	for i := range latencies {
		l := &latencies[i]
		take(l.P50)
		take(l.P99)
		for _, b := range l.Distribution {
			take(b.From)
			take(b.To)
		}
	}
	if from > to {
		return axis{-6, -3}
	}
	// A bound that is a power of ten may come out a little on either side of it.
	const slack = 0.001
	a := axis{math.Floor(from + slack), math.Ceil(to - slack)}
	a.to = max(a.to, a.from+1)
	return a
}

// at returns where a time is.
func (a axis) at(seconds float64) float64 {
	if seconds <= 0 {
		return chartLeft
	}
	x := chartLeft + (chartRight-chartLeft)*(math.Log10(seconds)-a.from)/(a.to-a.from)
	return min(max(x, chartLeft), chartRight)
}

// distribution returns the picture of how the samples of a latency are distributed.
func distribution(l *api.Latency, a axis) template.HTML {
	highest, samples := 0, 0
	for _, b := range l.Distribution {
		highest = max(highest, b.Samples)
		samples += b.Samples
	}
	if highest == 0 {
		return ""
	}
	first, last := l.Distribution[0], l.Distribution[len(l.Distribution)-1]
	d := newDrawing("distribution", chartWidth, chartHeight,
		fmt.Sprintf("Distribution of %s from %s to %s", text.Plural(samples, "sample"), text.Seconds(first.From), text.Seconds(last.To)),
		fmt.Sprintf("Median %s, 99th percentile %s; the scale goes from %s to %s.", text.Seconds(l.P50), text.Seconds(l.P99), tick(a.from), tick(a.to)))

	// With many decades not each has room for its time.
	step := math.Ceil((a.to - a.from) / 6)
	for decade := a.from; decade <= a.to; decade += step {
		x := a.at(math.Pow(10, decade))
		d.tag(`<path class="grid" d="M`, x, chartTop, `V`, chartBase, `"/>`)
		d.tag(`<text class="tick" x=`, x, ` y=`, chartHeight-4, `>`+tick(decade)+`</text>`)
	}
	d.tag(`<path class="samples" d="`)
	for _, b := range l.Distribution {
		from, to := a.at(b.From), a.at(b.To)
		// Neighbours are told apart by a gap.
		d.tag(`M`, from, chartBase, `V`, chartBase-max(1, (chartBase-chartTop)*float64(b.Samples)/float64(highest)), `H`, max(to-0.6, from+0.6), `V`, chartBase, `z`)
	}
	d.tag(`"/><path class="base" d="M`, chartLeft, chartBase, `H`, chartRight, `"/>`)
	if l.Samples > 0 {
		p50, p99 := a.at(l.P50), a.at(l.P99)
		d.tag(`<path class="p50" d="M`, p50, chartTop-4, `V`, chartBase, `"/><text class="before" x=`, p50-2, ` y=`, chartTop-5, `>p50</text>`)
		d.tag(`<path class="p99" d="M`, p99, chartTop-4, `V`, chartBase, `"/><text class="after" x=`, p99+2, ` y=`, chartTop-5, `>p99</text>`)
	}
	return d.html()
}

// tick returns a power of ten of seconds.
func tick(decade float64) string { return text.Seconds(math.Pow(10, decade)) }

// bar returns a picture of how much of a limit is used up.
func bar(n, limit int64, level string) template.HTML {
	const width, height = 160.0, 8.0
	used := width * min(float64(n)/float64(limit), 1)
	if n > 0 {
		used = max(used, 1) // so that there is something to be seen
	}
	d := newDrawing("bar", width, height, text.Percent(n, limit)+" of the limit", "")
	d.tag(`<rect class="track" width=`, width, ` height=`, height, `/><rect class="`+level+`" width=`, used, ` height=`, height, `/>`)
	return d.html()
}
