package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A link to wherever standard output goes is not what a report may replace, whatever
// it leads to at the moment.
func TestOutputLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, target := range []string{"/proc/self/fd/1", "/proc/self/exe", "/dev/null"} {
		link := filepath.Join(dir, filepath.Base(target))
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		if err := checkOutput("--output", link); err == nil || !strings.Contains(err.Error(), target) {
			t.Errorf("%s: %v", target, err)
		}
	}
	file := filepath.Join(dir, "report")
	if err := os.Symlink(filepath.Join(dir, "old"), file); err != nil {
		t.Fatal(err)
	}
	if err := checkOutput("--output", file); err != nil {
		t.Errorf("a link to a file: %v", err)
	}
}
