package docs_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRaces makes sure that each package that starts goroutines, or guards against those
// of others, is among those that the Makefile has tested with the race detector.
func TestRaces(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	watched := listed(string(makefile), "concurrent")
	for dir, files := range packages(t) {
		found := false
		for _, f := range files {
			for _, i := range f.Imports {
				found = found || i.Path.Value == `"sync"` || i.Path.Value == `"sync/atomic"`
			}
			ast.Inspect(f, func(n ast.Node) bool {
				_, goes := n.(*ast.GoStmt)
				found = found || goes
				return true
			})
		}
		if path := "./" + strings.TrimPrefix(dir, root+"/"); found && !slices.Contains(watched, path) {
			t.Errorf("%s is not in the list concurrent of the Makefile", path)
		}
	}
}

// TestSpared makes sure that each test that the race detector is spared is run without it:
// the Makefile lists the packages of these tests.
func TestSpared(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	spared, found := listed(string(makefile), "spared"), make(map[string]bool)
	sequential := strings.Join(listed(string(makefile), "sequential"), "")
	test := regexp.MustCompile(`(?m)^func (` + sequential + `)\(`)
	for _, path := range listed(string(makefile), "concurrent") {
		files, err := filepath.Glob(filepath.Join(root, path, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %q", path, err, files)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range test.FindAllStringSubmatch(string(text), -1) {
				found[m[1]] = true
				if !slices.Contains(spared, path) {
					t.Errorf("%s is of %s, which is not in the list spared of the Makefile", m[1], path)
				}
			}
		}
	}
	for name := range strings.SplitSeq(sequential, "|") {
		if !found[name] {
			t.Errorf("there is no %s in the packages of the list concurrent of the Makefile", name)
		}
	}
}

// listed are the words of a list of the Makefile.
func listed(makefile, name string) []string {
	line := regexp.MustCompile(`(?m)^` + name + ` := (.*)`).FindStringSubmatch(makefile)
	if line == nil {
		return nil
	}
	return strings.Fields(strings.ReplaceAll(line[1], "/...", "/rdma_exporter"))
}
