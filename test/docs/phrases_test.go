package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stilted are phrases that nobody would say. Things may be told apart.
var stilted = regexp.MustCompile(`(?i)\b(?:is told|are told|but for|there is nothing to be done|at most by which)\b`)

// unedited are the pages that still have such phrases, with the most that each may have.
// A page that loses some gets a smaller number, and one without any leaves the list. No
// number grows, and no page is added.
func unedited() map[string]int {
	return map[string]int{
		"docs/alerts.md":             5,
		"docs/reference/findings.md": 13,
		"docs/reference/metrics.md":  4,
		"docs/reference/counters.md": 27,
	}
}

// TestPhrases makes sure that the documentation is in plain English. Code is left out: it
// is quoted as it is.
func TestPhrases(t *testing.T) {
	for _, p := range pages(t) {
		path := filepath.ToSlash(p.path)
		if path != "README.md" && !strings.HasPrefix(path, "docs/") {
			continue
		}
		// A phrase may stand across the end of a line.
		text := strings.Join(strings.Fields(code.ReplaceAllString(strings.Join(p.prose(), "\n"), "`x`")), " ")
		text = strings.ReplaceAll(text, "told apart", "distinguished")
		found := stilted.FindAllStringIndex(text, -1)
		if len(found) <= unedited()[path] {
			continue
		}
		for _, at := range found {
			t.Errorf("%s: say it plainly: …%s…", path, text[max(0, at[0]-30):min(len(text), at[1]+30)])
		}
	}
}
