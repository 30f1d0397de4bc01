package docs_test

import (
	"strings"
	"testing"
)

// mostREADME is the most lines of the README: it is for a first look, and the pages of
// docs/ are for the rest.
const mostREADME = 130

// TestREADME makes sure that the README stays short.
func TestREADME(t *testing.T) {
	for _, p := range pages(t) {
		if p.path == "README.md" {
			if n := strings.Count(p.text, "\n"); n > mostREADME {
				t.Errorf("README.md has %d lines, of %d at most: move something to docs/", n, mostREADME)
			}
			return
		}
	}
	t.Error("there is no README.md")
}
