package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// keeper is a link to a test, with its name and file.
var keeper = regexp.MustCompile("\\[`(Test[A-Za-z]+)`\\]\\(([a-z0-9_/.]+_test\\.go)\\)")

// TestHarmlessness makes sure that each line of the budget names the tests that keep it,
// and that these are where the links lead.
func TestHarmlessness(t *testing.T) {
	const path, title = "docs/harmlessness.md", "## The budget"
	for _, p := range pages(t) {
		if p.path != path {
			continue
		}
		lines := 0
		for _, line := range p.section(t, title) {
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what |") {
				continue
			}
			lines++
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			if len(cells) != 3 {
				t.Errorf("%s: %d cells, want what, its bound, and who keeps it: %s", path, len(cells), line)
				continue
			}
			kept := keeper.FindAllStringSubmatch(cells[2], -1)
			if len(kept) == 0 || keeper.ReplaceAllString(cells[2], "") != strings.Repeat(", ", len(kept)-1) {
				t.Errorf("%s: no test keeps %q, but %q", path, cells[0], cells[2])
			}
			for _, k := range kept {
				source, err := os.ReadFile(filepath.Join(root, "docs", k[2]))
				if err != nil {
					t.Errorf("%s: %v", path, err)
				} else if !strings.Contains(string(source), "\nfunc "+k[1]+"(t *testing.T) {") {
					t.Errorf("%s: %s has no %s", path, k[2], k[1])
				}
			}
		}
		if lines < 10 {
			t.Errorf("%s: below %q there are only %d lines", path, title, lines)
		}
		return
	}
	t.Fatalf("there is no %s", path)
}
