// Package sbom reads the lists of components of a release (CycloneDX), which
// cyclonedx-gomod writes of each program: make release.
package sbom

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestComponents compares each list with the modules in its program.
func TestComponents(t *testing.T) {
	release, version := os.Getenv("RDMA_RELEASE"), os.Getenv("RDMA_VERSION")
	lists, err := filepath.Glob(filepath.Join(release, "*.cdx.json"))
	if err != nil || len(lists) != 2 {
		t.Fatalf("RDMA_RELEASE has to be the folder of a release, with a list of components for each of 2 architectures: %v %v", lists, err)
	}
	for _, list := range lists {
		t.Run(filepath.Base(list), func(t *testing.T) {
			text, err := os.ReadFile(list)
			if err != nil {
				t.Fatal(err)
			}
			var bom cdx.BOM
			if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
				t.Fatal(err)
			}
			if main := bom.Metadata.Component; main == nil || main.Name != "rdma_exporter" || main.Version != "v"+version {
				t.Errorf("it is about %+v", main)
			}
			tarball := strings.TrimSuffix(list, ".cdx.json") + ".tar.gz"
			if got, want := components(bom), modules(t, tarball); !slices.Equal(got, want) {
				t.Errorf("it lists\n%s\nand the program has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// components returns the modules of a list, except Go's own library.
func components(bom cdx.BOM) []string {
	var list []string
	for _, c := range *bom.Components {
		if c.Name != "std" {
			list = append(list, c.Name+" "+c.Version)
		}
	}
	slices.Sort(list)
	return list
}

// modules returns the modules in the program of a tarball.
func modules(t *testing.T, tarball string) []string {
	t.Helper()
	program, err := exec.CommandContext(t.Context(), "tar", "-xzOf", tarball, "--wildcards", "*/rdma_exporter").Output()
	if err != nil {
		t.Fatalf("%s: %v", tarball, err)
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range info.Deps {
		list = append(list, fmt.Sprintf("%s %s", m.Path, m.Version))
	}
	slices.Sort(list)
	return list
}
