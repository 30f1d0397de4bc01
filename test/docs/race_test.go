package docs_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// TestRaces makes sure that each package that starts goroutines, or guards against those
// of others, is among those that the Makefile has tested with the race detector.
func TestRaces(t *testing.T) {
	makefile := running.Must(os.ReadFile(filepath.Join(root, "Makefile")))(t)
	_, list, _ := strings.Cut(string(makefile), "\nconcurrent := ")
	list, _, _ = strings.Cut(list, "\n")
	watched := strings.Fields(strings.ReplaceAll(list, "/...", "/rdma_exporter"))
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
