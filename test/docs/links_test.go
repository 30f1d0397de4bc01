package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/test/links"
)

// TestLinks makes sure that what pages link to within the repository is there, its
// section too.
func TestLinks(t *testing.T) {
	if n := links.Check(t, root); n < 50 {
		t.Errorf("only %d links were found", n)
	}
}

// TestInstalledLinks makes sure of the same where the pages are installed, beside which
// packages and tarballs have few of the things that the repository has.
func TestInstalledLinks(t *testing.T) {
	folder := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "tools", "pages"), folder).CombinedOutput(); err != nil {
		t.Fatalf("tools/pages: %v\n%s", err, out)
	}
	for _, beside := range []string{"LICENSE", "alerts", "dashboards"} {
		path, err := filepath.Abs(filepath.Join(root, beside))
		if err == nil {
			err = os.Symlink(path, filepath.Join(folder, beside))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	installed := links.Pages(t, folder)
	for path := range links.Pages(t, root) {
		if _, there := installed[path]; !there && strings.HasPrefix(path, "docs/") {
			t.Errorf("%s is not installed", path)
		}
	}
	n := links.Check(t, folder)
	t.Logf("%d links of %d pages", n, len(installed))
	if n < 300 {
		t.Errorf("only %d links are left: too many are left out", n)
	}
}
