package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// A link to wherever standard output goes is not what a report may replace, whatever
// it leads to at the moment.
func TestOutputLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, target := range []string{"/proc/self/fd/1", "/proc/self/exe", "/dev/null"} {
		link := filepath.Join(dir, filepath.Base(target))
		running.Check(t, os.Symlink(target, link))
		if err := checkOutput("--output", link); err == nil || !strings.Contains(err.Error(), target) {
			t.Errorf("%s: %v", target, err)
		}
	}
	file := filepath.Join(dir, "report")
	running.Check(t, os.Symlink(filepath.Join(dir, "old"), file))
	if err := checkOutput("--output", file); err != nil {
		t.Errorf("a link to a file: %v", err)
	}
}
