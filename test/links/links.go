// Package links looks at where the links of pages lead: in the repository, and where the
// pages are installed.
package links

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`(?:\]\(|<img src=")([^()\s"]+)[)"]`)
	code    = regexp.MustCompile("`[^`]*`")
	fence   = regexp.MustCompile("^ *(```|~~~)")
	heading = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// Pages returns the text of each page below a folder by its path there. Folders whose
// names begin with a dot, and test data, are left out.
func Pages(t testing.TB, root string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		all[relative] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Check makes sure that what the pages below a folder link to is there, in that folder,
// its section too. It returns the number of links; those to other hosts are left out.
func Check(t testing.TB, root string) int {
	t.Helper()
	all := Pages(t, root)
	anchors := make(map[string]map[string]bool)
	for path, text := range all {
		anchors[path] = anchorsOf(text)
	}
	links := 0
	for page, text := range all {
		for i, line := range Prose(text) {
			for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, "`x`"), -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				links++
				path, anchor, hasAnchor := strings.Cut(m[1], "#")
				target := page
				if path != "" {
					target = filepath.Join(filepath.Dir(page), path)
				}
				if _, err := os.Stat(filepath.Join(root, target)); err != nil || !filepath.IsLocal(target) {
					t.Errorf("%s:%d: %s leads nowhere", page, i+1, m[1])
				} else if hasAnchor && anchors[target] != nil && !anchors[target][anchor] {
					t.Errorf("%s:%d: %s has no section %q", page, i+1, target, anchor)
				}
			}
		}
	}
	return links
}

// Prose returns the lines of a page without blocks of code, which are empty.
func Prose(text string) []string {
	lines := strings.Split(text, "\n")
	code := false
	for i, line := range lines {
		if fence.MatchString(line) {
			code = !code
			lines[i] = ""
		} else if code {
			lines[i] = ""
		}
	}
	return lines
}

// anchorsOf returns the anchors of a page's headings, as GitHub makes them.
func anchorsOf(text string) map[string]bool {
	anchors := make(map[string]bool)
	for _, line := range Prose(text) {
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
