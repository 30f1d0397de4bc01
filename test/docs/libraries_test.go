package docs_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// TestLibraries makes sure that the versions of libibverbs's symbols that the program
// needs are those that the documentation tells. Those of the C library are as the system
// that it was built on.
func TestLibraries(t *testing.T) {
	binary, err := elf.Open(os.Getenv("RDMA_EXPORTER_BINARY"))
	if err != nil {
		t.Fatalf("RDMA_EXPORTER_BINARY has to be the absolute path of the built exporter (make build): %v", err)
	}
	defer func() { _ = binary.Close() }()
	symbols := running.Must(binary.ImportedSymbols())(t)
	var needed []string
	for _, s := range symbols {
		if strings.HasPrefix(s.Version, "IBVERBS_") && !slices.Contains(needed, s.Version) {
			needed = append(needed, s.Version)
		}
	}
	text := running.Must(os.ReadFile(filepath.Join(root, "docs/installation.md")))(t)
	told := regexp.MustCompile(`(?m)^IBVERBS_[0-9.]+$`).FindAllString(string(text), -1)
	slices.Sort(needed)
	slices.Sort(told)
	if len(needed) == 0 || !slices.Equal(needed, told) {
		t.Errorf("docs/installation.md names %v, and the program needs %v", told, needed)
	}
}
