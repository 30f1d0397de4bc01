package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	code    = regexp.MustCompile("`[^`]*`")
	heading = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestLinks makes sure that what pages link to within the repository is there, its
// section too.
func TestLinks(t *testing.T) {
	all := pages(t)
	anchors := make(map[string]map[string]bool)
	for _, p := range all {
		anchors[p.path] = anchorsOf(p)
	}
	links := 0
	for _, p := range all {
		for i, line := range p.prose() {
			for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, "`x`"), -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				links++
				path, anchor, hasAnchor := strings.Cut(m[1], "#")
				target := p.path
				if path != "" {
					target = filepath.Join(filepath.Dir(p.path), path)
				}
				if _, err := os.Stat(filepath.Join(root, target)); err != nil {
					t.Errorf("%s:%d: %s leads nowhere", p.path, i+1, m[1])
				} else if hasAnchor && anchors[target] != nil && !anchors[target][anchor] {
					t.Errorf("%s:%d: %s has no section %q", p.path, i+1, target, anchor)
				}
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// anchorsOf returns the anchors of a page's headings, as GitHub makes them.
func anchorsOf(p page) map[string]bool {
	anchors := make(map[string]bool)
	for _, line := range p.prose() {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '_', r == '-':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			default:
				return -1
			}
		}, linked.ReplaceAllString(m[1], "$1"))
		for n := 1; anchors[anchor]; n++ {
			if next := fmt.Sprintf("%s-%d", anchor, n); !anchors[next] {
				anchor = next
				break
			}
		}
		anchors[anchor] = true
	}
	return anchors
}
