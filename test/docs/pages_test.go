package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the top of the repository.
const root = "../.."

// A page is a file of documentation.
type page struct {
	// path is relative to root.
	path string
	text string
}

// pages returns every page of the repository.
func pages(t *testing.T) []page {
	t.Helper()
	var all []page
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
		all = append(all, page{relative, string(text)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d pages were found", len(all))
	}
	return all
}

var fence = regexp.MustCompile("^ *(```|~~~)")

// prose returns the lines of a page without blocks of code, which are empty.
func (p page) prose() []string {
	lines := strings.Split(p.text, "\n")
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
