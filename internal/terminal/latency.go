package terminal

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/text"
)

// latencies writes how long completions took, by port, path and mode.
func (p *page) latencies(all []api.Latency) {
	if len(all) == 0 {
		return
	}
	p.blank()
	p.pad(2)
	p.wrap(2, 2, p.of(strong, "Completions:"), p.of(plain, " from posting the work to its event (any, solicited), or to finding it (poll)"))
	t := &table{
		indent: 2, head: []string{"port", "path", "mode", "samples", "p50", "p99", "distribution", ""},
		right: map[int]bool{3: true, 4: true, 5: true}, pictures: map[int]bool{6: true},
	}
	for i := range all {
		l := &all[i]
		p50, p99 := "", ""
		if l.Samples > 0 {
			p50, p99 = duration(l.P50), duration(l.P99)
		}
		t.add(
			p.cell(plain, fmt.Sprint(l.Port)), p.cell(plain, string(l.Path)), p.cell(plain, string(l.Mode)),
			p.cell(plain, text.Number(l.Samples)), p.cell(strong, p50), p.cell(plain, p99),
			[]span{p.picture(l.Distribution)}, p.cell(bad, wrong(l)),
		)
	}
	p.table(t)
}

// ways writes how completions were brought about.
func (p *page) ways(all []api.Way) {
	for _, w := range all {
		text := w.By
		if w.InsteadOf != "" {
			text = joined(", not ", cmp.Or(text, "no way found"), w.InsteadOf)
		}
		p.labelled("", p.of(faint, fmt.Sprintf("%s port %d: ", w.Path, w.Port)), p.of(plain, text))
	}
}

// wrong says what went wrong in a measurement.
func wrong(l *api.Latency) string {
	var parts []string
	for _, w := range []struct {
		n    int
		what string
	}{
		{l.Missed, "missed"},
		{l.Spurious, "spurious"},
		{l.Misdirected, "misdirected"},
		{l.Missing, "missing"},
		{l.Unsuccessful, "unsuccessful"},
	} {
		if w.n > 0 {
			parts = append(parts, text.Number(w.n)+" "+w.what)
		}
	}
	return strings.Join(parts, ", ")
}

// maxColumns is the most columns of a picture of a distribution.
const maxColumns = 24

// picture returns a distribution as a row of bars, on the scale of ratios.
func (p *page) picture(bins []api.Bin) span {
	return p.of(plain, p.bars(spread(bins, maxColumns)))
}

// spread returns how many samples are in each of at most so many columns, which
// cover the bins from the first to the last. Nothing comes of bins that are none.
func spread(bins []api.Bin, most int) []float64 {
	var from, to, ratio float64
	for _, b := range bins {
		if !(b.From > 0 && b.To > b.From) || math.IsInf(b.To, 1) || b.Samples <= 0 {
			continue
		}
		if from == 0 || b.From < from {
			from = b.From
		}
		to = max(to, b.To)
		if r := math.Log(b.To / b.From); ratio == 0 || r < ratio {
			ratio = r
		}
	}
	if !(ratio > 0) {
		return nil
	}
	n := min(max(int(math.Round(math.Log(to/from)/ratio)), 1), most)
	counts := make([]float64, n)
	for _, b := range bins {
		if b.From >= from && b.To <= to && b.Samples > 0 {
			middle := math.Log(math.Sqrt(b.From)*math.Sqrt(b.To)/from) / math.Log(to/from)
			counts[min(max(int(middle*float64(n)), 0), n-1)] += float64(b.Samples)
		}
	}
	return counts
}

// bars returns bars of the height of values: the highest is as high as can be, and
// none above zero is invisible.
func (p *page) bars(values []float64) string {
	levels := []rune(" .:-=+*#@")
	if p.screen.Unicode {
		levels = []rune(" ▁▂▃▄▅▆▇█")
	}
	var most float64
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	for _, v := range values {
		level := 0
		if v > 0 && most > 0 {
			level = min(max(int(math.Ceil(v/most*float64(len(levels)-1))), 1), len(levels)-1)
		}
		b.WriteRune(levels[level])
	}
	return b.String()
}

// vectors writes how long notification takes on each completion vector: a strip in
// which the slow ones stand out, and the slow ones in words.
func (p *page) vectors(d *api.Device) {
	if len(d.Vectors) == 0 {
		return
	}
	p.blank()
	p.pad(2)
	text := fmt.Sprintf(" %d measured", len(d.Vectors))
	if d.Identity != nil && d.Identity.CompletionVectors > len(d.Vectors) {
		text += fmt.Sprintf(" of %d", d.Identity.CompletionVectors)
	}
	p.wrap(2, 2, p.of(strong, "Completion vectors:"), p.of(plain, text+", height is the median time"))
	values := make([]float64, len(d.Vectors))
	for i := range d.Vectors {
		values[i] = d.Vectors[i].P50
	}
	bars := []rune(p.bars(values))
	room := p.screen.width() - 12
	for first := 0; first < len(bars); first += room {
		last := min(first+room, len(bars))
		p.pad(2)
		p.put(p.of(faint, fmt.Sprintf("%7d ", d.Vectors[first].Number)))
		for i := first; i < last; i++ {
			s := good
			if d.Vectors[i].Slow || d.Vectors[i].Wrong > 0 {
				s = bad
			}
			p.put(p.of(s, string(bars[i])))
		}
		p.blank()
		if marks := slowMarks(d.Vectors[first:last]); marks != "" {
			p.pad(10)
			p.line(p.of(bad, marks))
		}
	}
	for i := range d.Vectors {
		v := &d.Vectors[i]
		if !v.Slow && v.Wrong == 0 {
			continue
		}
		var is []string
		if v.Slow {
			is = append(is, "slow")
		}
		if v.Wrong > 0 {
			is = append(is, fmt.Sprintf("%d wrong", v.Wrong))
		}
		p.labelled("", p.of(bad, fmt.Sprintf("vector %d: %s", v.Number, strings.Join(is, ", "))),
			p.of(plain, fmt.Sprintf(", p50 %s, p99 %s, by %s on port %d", duration(v.P50), duration(v.P99), v.Path, v.Port)))
	}
}

// slowMarks returns a line that points at the slow ones, for those who see no
// colours.
func slowMarks(vectors []api.Vector) string {
	var b strings.Builder
	for i := range vectors {
		if vectors[i].Slow || vectors[i].Wrong > 0 {
			b.WriteByte('^')
		} else {
			b.WriteByte(' ')
		}
	}
	return strings.TrimRight(b.String(), " ")
}
