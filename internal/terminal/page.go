package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// style is how text looks.
type style int

const (
	plain style = iota
	strong
	faint
	good
	odd
	bad
)

// code returns what switches a style on, in the words of ECMA-48; empty for none.
func (s style) code() string {
	return [...]string{plain: "", strong: "1", faint: "2", good: "32", odd: "33", bad: "1;31"}[s]
}

// safe is text that can be shown: without control characters and, where the screen
// is to have ASCII only, without anything else. Only page.clean makes some.
type safe string

// span is text of one style.
type span struct {
	style style
	text  safe
}

// page is text that is being laid out.
type page struct {
	screen Screen
	buf    strings.Builder
	// style is that of the text that is written last.
	style style
}

// tie is a space at which no line ends. On the page it is an ordinary one.
const tie = "\u00a0"

// clean returns text without what could steer a terminal. A space stands for every
// kind of space but ties, and U+FFFD or, in ASCII, a question mark for all else that
// is not meant to be seen.
func (p *page) clean(s string) safe {
	var b strings.Builder
	for _, r := range s {
		if string(r) == tie {
			b.WriteRune(r)
			continue
		}
		if r = text.Visible(r); r < utf8.RuneSelf || p.screen.Unicode {
			b.WriteRune(r)
		} else {
			b.WriteString(inASCII(r))
		}
	}
	return safe(b.String())
}

// inASCII returns what stands for a character that is no ASCII.
func inASCII(r rune) string {
	switch r {
	case '…':
		return "..."
	case 'µ':
		return "u"
	case '→':
		return "->"
	case '–', '—', '─':
		return "-"
	case '×':
		return "x"
	case '≥':
		return ">="
	case '≤':
		return "<="
	case '’', '‘':
		return "'"
	case '“', '”':
		return `"`
	default:
		return "?"
	}
}

// of returns text of a style.
func (p *page) of(s style, text string) span { return span{s, p.clean(text)} }

// columns returns how wide text is. Characters that East Asians write count twice,
// and those that sit on others not at all.
func columns(s safe) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
			r >= 0xff01 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff:
			n += 2
		default:
			n++
		}
	}
	return n
}

// cut returns text that is no wider than n columns.
func (p *page) cut(text string, n int) span {
	whole := p.of(plain, text)
	end := p.clean("…")
	room, fits := n-columns(end), 0
	at := 0
	for i, r := range whole.text {
		if at <= room {
			fits = i
		}
		if at += columns(safe(r)); at > n {
			if room < 0 {
				return span{}
			}
			return span{plain, whole.text[:fits] + end}
		}
	}
	return whole
}

func width(spans []span) int {
	n := 0
	for _, s := range spans {
		n += columns(s.text)
	}
	return n
}

// put writes text without a line's end.
func (p *page) put(spans ...span) {
	for _, s := range spans {
		if s.text != "" {
			p.dress(s.style)
			p.buf.WriteString(strings.ReplaceAll(string(s.text), tie, " "))
		}
	}
}

// dress has what follows look like a style.
func (p *page) dress(s style) {
	if !p.screen.Colour || s == p.style {
		return
	}
	if p.style != plain {
		p.buf.WriteString("\x1b[0m")
	}
	if s != plain {
		p.buf.WriteString("\x1b[" + s.code() + "m")
	}
	p.style = s
}

func (p *page) pad(n int) { p.buf.WriteString(strings.Repeat(" ", max(n, 0))) }

// line writes a line as it is.
func (p *page) line(spans ...span) {
	p.put(spans...)
	p.blank()
}

// blank ends a line, or writes an empty one.
func (p *page) blank() {
	p.dress(plain)
	p.buf.WriteByte('\n')
}

// words returns the words of text. A word can have several styles.
func words(spans []span) [][]span {
	var all [][]span
	open := false // The last word may go on.
	for _, s := range spans {
		for i, part := range strings.Split(string(s.text), " ") {
			if i > 0 {
				open = false
			}
			if part == "" {
				continue
			}
			piece := span{s.style, safe(part)}
			if open {
				all[len(all)-1] = append(all[len(all)-1], piece)
			} else {
				all = append(all, []span{piece})
				open = true
			}
		}
	}
	return all
}

// wrap writes text, wrapped, after what stands on the line already, which ends in
// column at. Further lines begin in column indent. A word is never broken, for it may
// be a path or a name to copy.
func (p *page) wrap(at, indent int, spans ...span) {
	limit := p.screen.width()
	start := true
	for _, word := range words(spans) {
		n := width(word)
		switch {
		case start:
		case at+1+n > limit:
			p.blank()
			p.pad(indent)
			at = indent
		default:
			p.pad(1)
			at++
		}
		p.put(word...)
		at += n
		start = false
	}
	p.blank()
}

// labelled writes wrapped text beside a label. The label's column is as wide as
// labels are.
func (p *page) labelled(label string, spans ...span) {
	const margin, column = 2, 11
	name := p.of(strong, label)
	p.pad(margin)
	p.put(name)
	gap := max(column-columns(name.text), 1)
	if label == "" {
		gap = column
	}
	p.pad(gap)
	p.wrap(margin+columns(name.text)+gap, margin+column, spans...)
}

// table is rows of cells, each of some spans. Where it is too wide, each row becomes
// a sentence.
type table struct {
	indent int
	// head are the names of the columns. The first may be empty.
	head []string
	// right are the columns that are aligned to the right, and pictures those that
	// nobody can read out.
	right, pictures map[int]bool
	rows            [][][]span
}

func (t *table) add(cells ...[]span) { t.rows = append(t.rows, cells) }

const gutter = 2 // between two columns

// table writes a table. One without rows is nothing.
func (p *page) table(t *table) {
	if len(t.rows) == 0 {
		return
	}
	widths := make([]int, len(t.head))
	heads := make([][]span, len(t.head))
	for i, h := range t.head {
		heads[i] = []span{p.of(faint, h)}
		widths[i] = width(heads[i])
		for _, row := range t.rows {
			widths[i] = max(widths[i], width(row[i]))
		}
	}
	all := t.indent - gutter
	for _, w := range widths {
		all += w + gutter
	}
	if all > p.screen.width() {
		p.sentences(t)
		return
	}
	p.row(t, widths, heads)
	for _, row := range t.rows {
		p.row(t, widths, row)
	}
}

func (p *page) row(t *table, widths []int, cells [][]span) {
	last := len(cells) - 1
	for last > 0 && width(cells[last]) == 0 {
		last--
	}
	p.pad(t.indent)
	for i, cell := range cells[:last+1] {
		space := widths[i] - width(cell)
		if t.right[i] {
			p.pad(space)
		}
		p.put(cell...)
		if i < last {
			if !t.right[i] {
				p.pad(space)
			}
			p.pad(gutter)
		}
	}
	p.blank()
}

// sentences writes a table that is too wide.
func (p *page) sentences(t *table) {
	for _, row := range t.rows {
		var text []span
		for i, cell := range row {
			if width(cell) == 0 || t.pictures[i] {
				continue
			}
			if len(text) > 0 {
				text = append(text, p.of(plain, ", "))
			}
			if name := t.head[i]; name != "" {
				text = append(text, p.of(faint, name+" "))
			}
			text = append(text, cell...)
		}
		p.pad(t.indent)
		p.wrap(t.indent, t.indent+2, text...)
	}
}

// cell returns a cell of one style.
func (p *page) cell(s style, text string) []span { return []span{p.of(s, text)} }

// healthStyle returns how a health looks.
func healthStyle(h api.Health) style {
	switch h {
	case api.HealthOK:
		return good
	case api.HealthCritical:
		return bad
	default:
		return odd
	}
}

// severityStyle returns how a severity, of a finding or of a contract, looks.
func severityStyle[T ~string](s T) style {
	switch string(s) {
	case string(api.SeverityCritical):
		return bad
	case string(api.SeverityInfo):
		return faint
	default:
		return odd
	}
}

// outcomeStyle returns how the outcome of a run looks.
func outcomeStyle(o state.Outcome) style {
	if o == state.OutcomeOK {
		return good
	}
	return bad
}
