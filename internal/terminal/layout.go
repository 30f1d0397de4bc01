package terminal

import (
	"fmt"
	"strings"
	"text/template/parse"
	"unicode/utf8"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/text"
)

// A style is a character that begins text of one look. The characters are from a private use
// area of Unicode, which clean removes from text.
type style rune

const (
	plain style = '\ue000' + iota // ends the other styles
	strong
	faint
	good
	odd
	bad
	// hang is where the further lines of a wrapped line begin.
	hang
)

func (s style) ansi() string {
	return map[style]string{plain: "0", strong: "1", faint: "2", good: "32", odd: "33", bad: "1;31"}[s]
}

// safe is text that may have styles and has no other control characters.
type safe string

// clean returns text without control characters, and in ASCII if the screen has no more.
func (s Screen) clean(v any) safe {
	if clean, ok := v.(safe); ok {
		return clean
	}
	var b strings.Builder
	for _, r := range fmt.Sprint(v) {
		if r = text.Visible(r); r < utf8.RuneSelf || s.Unicode {
			b.WriteRune(r)
		} else {
			b.WriteString(inASCII(r))
		}
	}
	return safe(b.String())
}

func inASCII(r rune) string {
	ascii := map[rune]string{
		'…': "...", '°': "deg ", 'µ': "u", '→': "->", '–': "-", '—': "-", '─': "-", '×': "x", '≥': ">=", '≤': "<=", '’': "'", '‘': "'", '“': `"`, '”': `"`,
	}[r]
	if ascii == "" {
		return "?"
	}
	return ascii
}

func (s Screen) in(look style, v any) safe {
	return safe(string(look)) + s.clean(v) + safe(string(plain))
}

// guard makes each action of a template end with clean, as html/template does with its
// escapers.
func guard(n parse.Node) {
	branch := func(b *parse.BranchNode) {
		guard(b.List)
		guard(b.ElseList)
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, child := range n.Nodes {
				guard(child)
			}
		}
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			clean := parse.NewIdentifier("clean").SetPos(n.Pos)
			n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{clean}})
		}
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	}
}

// columns returns how wide text is without its styles.
func columns(s string) int {
	n := 0
	for _, r := range s {
		if r < rune(plain) || r > rune(hang) {
			n++
		}
	}
	return n
}

// lay aligns lines with tabs as tables, wraps the others, and sets the styles.
func (s Screen) lay(output string) string {
	var b strings.Builder
	lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
	for len(lines) > 0 {
		n := 0
		for n < len(lines) && strings.Contains(lines[n], "\t") {
			n++
		}
		if n == 0 {
			s.wrap(&b, lines[0])
			n = 1
		} else {
			table(&b, lines[:n])
		}
		lines = lines[n:]
	}
	var pairs []string
	for look := plain; look <= hang; look++ {
		code := ""
		if s.Colour && look != hang {
			code = "\x1b[" + look.ansi() + "m"
		}
		pairs = append(pairs, string(look), code)
	}
	return strings.NewReplacer(pairs...).Replace(b.String())
}

// table aligns cells. Text/tabwriter would count styles as characters.
func table(b *strings.Builder, lines []string) {
	widths := make(map[int]int)
	for _, line := range lines {
		for i, cell := range strings.Split(line, "\t") {
			widths[i] = max(widths[i], columns(cell)+2)
		}
	}
	for _, line := range lines {
		row := ""
		for i, cell := range strings.Split(line, "\t") {
			row += cell + strings.Repeat(" ", widths[i]-columns(cell))
		}
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
}

// wrap breaks a line between words, where it is too wide. Further lines begin where hang
// stands, or else where the first one does. A word is never broken, for it may be a path or
// a name to copy.
func (s Screen) wrap(b *strings.Builder, line string) {
	start, rest, hangs := strings.Cut(line, string(hang))
	if !hangs {
		rest = strings.TrimLeft(line, " ")
		start = line[:len(line)-len(rest)]
	}
	indent := columns(start)
	if indent+columns(rest) <= s.width() || !strings.Contains(rest, " ") {
		b.WriteString(strings.TrimRight(start+rest, " ") + "\n")
		return
	}
	at := indent
	b.WriteString(start)
	for i, word := range strings.Fields(rest) {
		n := columns(word)
		switch {
		case i == 0:
		case at+1+n > s.width():
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	b.WriteByte('\n')
}

func (s Screen) label(name string) safe {
	const column = 11
	clean := s.clean(name)
	return "  " + s.in(strong, clean) + safe(strings.Repeat(" ", max(column-len(clean), 1))) + safe(string(hang))
}

// advice returns what is wrong and what to do. Subjects and messages alternate; empty ones
// are left out.
func (s Screen) advice(look style, word, action string, remedy health.Remedy, said ...string) safe {
	const column = 10
	var b strings.Builder
	start := s.in(look, word) + safe(strings.Repeat(" ", max(column-len(word), 1)))
	line := func(words safe) {
		if words != "" {
			b.WriteString(string(start+safe(string(hang))+words) + "\n")
			start = safe(strings.Repeat(" ", column))
		}
	}
	for i, words := range said {
		if i%2 == 0 && words != "" {
			line(s.in(strong, words))
		} else if words != "" {
			line(s.clean(text.Truncate(words, maxMessage)))
		}
	}
	if action != "" {
		of := ""
		if remedy != "" {
			of = fmt.Sprintf(" (%s)", remedy)
		}
		line(s.in(strong, "To do"+of+": ") + s.clean(action))
	}
	return safe(b.String())
}
