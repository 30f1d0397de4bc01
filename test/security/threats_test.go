package security_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// TestThreats makes sure that each test that SECURITY.md names is there, and that it
// names each fuzz test.
func TestThreats(t *testing.T) {
	text := running.Must(os.ReadFile(filepath.Join(root, "SECURITY.md")))(t)
	told := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(string(text), -1)
	if len(told) < 10 {
		t.Fatalf("SECURITY.md names %d tests", len(told))
	}
	there := tests(t)
	var names []string
	for _, m := range told {
		names = append(names, m[1])
		if !slices.Contains(there, m[1]) {
			t.Errorf("SECURITY.md names %s, and there is no such test", m[1])
		}
	}
	for _, name := range there {
		if strings.HasPrefix(name, "Fuzz") && !slices.Contains(names, name) {
			t.Errorf("SECURITY.md does not say what %s is good for", name)
		}
	}
}

// tests returns the names of all tests in this module.
func tests(t *testing.T) []string {
	t.Helper()
	var names []string
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err == nil && entry.IsDir() && len(name) > 2 && name[0] == '.' {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(source), -1) {
			names = append(names, m[1])
		}
		return err
	})
	running.Check(t, err)
	return names
}
