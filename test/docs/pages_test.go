package docs_test

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/links"
)

// root is the top of the repository.
const root = "../.."

// A page is a file of documentation.
type page struct {
	// path is relative to root.
	path string
	text string
}

func pages(t *testing.T) []page {
	t.Helper()
	var all []page
	for path, text := range links.Pages(t, root) {
		all = append(all, page{path, text})
	}
	slices.SortFunc(all, func(a, b page) int { return strings.Compare(a.path, b.path) })
	if len(all) < 10 {
		t.Fatalf("only %d pages were found", len(all))
	}
	return all
}

// prose returns the lines of a page without blocks of code, which are empty.
func (p page) prose() []string { return links.Prose(p.text) }

// section returns the lines of a page below a heading, up to the next one that is not
// below it.
func (p page) section(t *testing.T, heading string) []string {
	t.Helper()
	level, _, _ := strings.Cut(heading, " ")
	var lines []string
	in := false
	for _, line := range p.prose() {
		if hashes, _, ok := strings.Cut(line, " "); ok && strings.Trim(hashes, "#") == "" && hashes != "" {
			if in && len(hashes) <= len(level) {
				break
			}
			in = in || line == heading
			continue
		}
		if in {
			lines = append(lines, line)
		}
	}
	if !in {
		t.Fatalf("%s has no heading %q", p.path, heading)
	}
	return lines
}
