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
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schema compiles the schema of CycloneDX, which the library has beside its source.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(strings.TrimSpace(string(out)), "schema")
	compiler := jsonschema.NewCompiler()
	const base = "http://cyclonedx.org/schema/" // the names of the schemas, of which none is fetched
	for name, pattern := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schema*.json",
	} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("no schema %s: %v %v", pattern, found, err)
		}
		text, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := compiler.AddResource(base+name, doc); err != nil {
			t.Fatal(err)
		}
	}
	compiled, err := compiler.Compile(base + "bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// TestComponents holds each list to the schema, and to what is compiled into the program
// that it is about.
func TestComponents(t *testing.T) {
	release, version := os.Getenv("RDMA_RELEASE"), os.Getenv("RDMA_VERSION")
	lists, err := filepath.Glob(filepath.Join(release, "*.cdx.json"))
	if err != nil || len(lists) != 2 {
		t.Fatalf("RDMA_RELEASE has to be the folder of a release, with a list of components for each of 2 architectures: %v %v", lists, err)
	}
	compiled := schema(t)
	for _, list := range lists {
		t.Run(filepath.Base(list), func(t *testing.T) {
			text, err := os.ReadFile(list)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := compiled.Validate(doc); err != nil {
				t.Error(err)
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

// components lists the modules that a list names, without Go's own library, which the
// program has not by module.
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

// modules lists what is compiled into the program of a tarball.
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
