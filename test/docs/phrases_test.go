package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stilted are phrases that nobody would say. Things may be told apart.
var stilted = regexp.MustCompile(`(?i)\b(?:` + strings.Join([]string{
	`(?:is|are|be) told`, `told (?:nowhere|raw)`, `what is told`, `but for`, `there is nothing to (?:be done|do)`, `at most by which`,
	`for want of`, `of whichever`, `those of its like`, `at the end of (?:its|their) width`, `memory in place`,
	`(?:gone?|went|did not go) to (?:its|their) end`, `refused further`, `tells? of`, `whereof`, `nevertheless`,
}, "|") + `)\b`)

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
		for _, at := range stilted.FindAllStringIndex(text, -1) {
			t.Errorf("%s: say it plainly: …%s…", path, text[max(0, at[0]-30):min(len(text), at[1]+30)])
		}
	}
}
