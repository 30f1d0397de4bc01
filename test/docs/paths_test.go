package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// file is code that is a path of the repository, and goFile the name of a file in it.
	file   = regexp.MustCompile(`^(?:\./)?([a-z_]+)/[a-z0-9_./-]+$`)
	goFile = regexp.MustCompile(`^[a-z][a-z_]*\.(?:go|h)$`)
	// goTest is a command that runs tests of a package, and target one of make.
	goTest = regexp.MustCompile(`\bgo test [^|\n` + "`" + `]*?(\./[a-z0-9_/]+[a-z0-9])`)
	called = regexp.MustCompile(`-(?:run|fuzz) '?\^?((?:Test|Fuzz|Benchmark)[A-Za-z]+)`)
	target = regexp.MustCompile("(?:`|^ *)make ([a-z][a-z0-9-]+)")
)

// TestPaths makes sure that the files, the tests and the targets of make that pages name
// are there. A path begins with a folder of the top, of internal, or beside its page.
func TestPaths(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir
		}
		if err == nil {
			names = append(names, d.Name())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pages(t) {
		if p.path == "CHANGELOG.md" {
			continue // It names paths that no longer exist.
		}
		for i, line := range strings.Split(p.text, "\n") {
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				if path := file.FindStringSubmatch(m[1]); path != nil && there(p, path[1]) && !there(p, m[1]) || goFile.MatchString(m[1]) && !slices.Contains(names, m[1]) {
					t.Errorf("%s:%d: there is no %s", p.path, i+1, m[1])
				}
			}
			for _, m := range goTest.FindAllStringSubmatch(line, -1) {
				tests, _ := filepath.Glob(filepath.Join(root, m[1], "*_test.go"))
				if len(tests) == 0 {
					t.Errorf("%s:%d: there are no tests in %s", p.path, i+1, m[1])
				}
				for _, name := range called.FindAllStringSubmatch(line, -1) {
					if !slices.ContainsFunc(tests, func(f string) bool {
						text, err := os.ReadFile(f)
						return err == nil && strings.Contains(string(text), "\nfunc "+name[1]+"(")
					}) {
						t.Errorf("%s:%d: %s has no %s", p.path, i+1, m[1], name[1])
					}
				}
			}
			for _, m := range target.FindAllStringSubmatch(line, -1) {
				if !strings.Contains(string(makefile), "\n"+m[1]+":") {
					t.Errorf("%s:%d: there is no make %s", p.path, i+1, m[1])
				}
			}
		}
	}
}

// named is a page of docs/ that something names.
var named = regexp.MustCompile(`(?:^|[^/a-z]|\.\./)(docs/[a-z/-]+\.md)\b`)

// TestPagesNamed makes sure that each page that code, rules, scripts or texts for users
// name is there.
func TestPagesNamed(t *testing.T) {
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && d.Name() != ".github":
			return fs.SkipDir
		case !d.Type().IsRegular() || d.Name() == "CHANGELOG.md": // It names paths that no longer exist.
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s: there is no %s", path, m[1])
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func there(p page, path string) bool {
	return slices.ContainsFunc([]string{"", "internal", filepath.Dir(p.path)}, func(dir string) bool {
		_, err := os.Stat(filepath.Join(root, dir, path))
		return err == nil
	})
}
