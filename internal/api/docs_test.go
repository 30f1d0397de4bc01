package api_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
)

// prologue precedes the fields in docs/reference/status-page.md.
const prologue = `# Status page and JSON

The fields below come from the comments in ` + "`internal/api/`, `internal/health/` and `internal/state/`; `go test ./internal/api -update`" + ` rewrites
this page.

## The page

` + "`/`" + ` serves a page for people, from the same state as the metrics. Loading it touches no device. It needs no scripts and
loads nothing from elsewhere. It works on a phone, in dark mode, and on paper. From the top:

- **Health of the host** in a word: critical, warning, unknown (a device has no recent probe run) or ok; how many devices
  and findings there are; a banner if the devices are [simulated](simulator.md).
- **What is wrong, and what to do**: every [finding](findings.md) that is critical or a warning, worst harm first. What
  several devices share appears once, with its consequences below it.
- **Devices**: one line each, worst first.
- **Device by device**: findings, runs, identity, [hardware](../hardware.md), latency of notification and completion,
  completion vectors, sizes requested and actual, [contracts](contracts.md) with evidence, and the objects of all programs
  with their limits and owners. If there are many devices, only a few unhealthy ones are open. ` + "`/#device-NAME`" + ` links to one.

A result is marked old if another run should have followed it: for probes, after twice the longest back-off (at most five
minutes) and some time for runs under way.

` + "`/?refresh=30`" + ` reloads the page every 30 seconds; 5 to 3600 are possible. Links are relative, so a proxy can serve the
page below any path that ends in ` + "`/`" + `. With [basic authentication](configuration.md#tls-and-authentication) page and JSON
need the password, and share a limit of concurrent requests, as large as that of scrapes. Without a password, everybody who can reach the exporter can read them, including names of processes,
containers and cgroups.

## The JSON

` + "`" + api.Path + "`" + ` has the same as JSON, and ` + "`rdma_exporter audit --format=json`" + ` writes it:

` + "```sh" + `
curl -s http://localhost:10879/api/v2/status | jq -r '.devices[] | [.name, .health, .headline] | @tsv'
curl -s http://localhost:10879/api/v2/status | jq -r '.devices[].findings[] | select(.severity == "critical") | .message'
` + "```" + `

It is an interface: within a version, fields are added and never renamed, removed or given another meaning.
[migration.md](../migration.md#the-json) lists what changed from version 1. Times are RFC 3339 in UTC. Fields that end in
` + "`_ns`" + ` are nanoseconds. Text from devices, drivers and processes has no control characters and is valid UTF-8, but is not
escaped for HTML. A field marked ? is left out while it is empty or zero.

`

// TestDocs compares the page with the types.
func TestDocs(t *testing.T) {
	p := &page{comments: make(map[string]string), seen: make(map[reflect.Type]bool)}
	for _, dir := range []string{".", "../state", "../health", "../hardware/counters"} {
		p.read(t, dir)
	}
	p.text.WriteString(prologue)
	p.add(reflect.TypeFor[api.Status]())
	for len(p.rest) > 0 {
		next := p.rest[0]
		p.rest = p.rest[1:]
		p.add(next)
	}
	golden.Check(t, filepath.Join("..", "..", "docs", "reference", "status-page.md"), strings.TrimRight(p.text.String(), "\n")+"\n")
}

// page is the page in the making.
type page struct {
	text strings.Builder
	// comments are those of the fields by package, type and field.
	comments map[string]string
	seen     map[reflect.Type]bool
	rest     []reflect.Type
}

// read reads the comments of a package.
func (p *page) read(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						p.comments[f.Name.Name+"."+spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
					}
				}
			}
			return true
		})
	}
}

// add adds the fields of a type: those without a comment of their own in a line, then the
// others.
func (p *page) add(t reflect.Type) {
	plain, commented := p.fields(t)
	fmt.Fprintf(&p.text, "### %s\n\n", nameOf(t))
	if len(plain) > 0 {
		p.text.WriteString("- " + strings.Join(plain, ", ") + "\n")
	}
	for _, line := range commented {
		p.text.WriteString("- " + line + "\n")
	}
	p.text.WriteString("\n")
}

// nameOf returns the name of a type. Two are called Device.
func nameOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[api.Status]():
		return "Top level"
	case reflect.TypeFor[state.Device]():
		return "DeviceInfo"
	default:
		return t.Name()
	}
}

func (p *page) fields(t reflect.Type) (plain, commented []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" {
			of := f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			morePlain, moreCommented := p.fields(of)
			plain, commented = append(plain, morePlain...), append(commented, moreCommented...)
			continue
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		tag = "`" + tag + "`"
		if option != "" {
			tag += "?"
		}
		tag += " " + p.typeOf(f.Type)
		if comment := p.comments[filepath.Base(t.PkgPath())+"."+t.Name()+"."+f.Name]; comment != "" {
			commented = append(commented, tag+": "+comment)
		} else {
			plain = append(plain, tag)
		}
	}
	return plain, commented
}

// typeOf returns a type in words, and has it be added if it is a struct.
func (p *page) typeOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t.Kind() == reflect.Pointer:
		return p.typeOf(t.Elem())
	case t.Kind() == reflect.Slice:
		return "list of " + p.typeOf(t.Elem())
	case t.Kind() == reflect.Struct:
		if !p.seen[t] {
			p.seen[t] = true
			p.rest = append(p.rest, t)
		}
		return fmt.Sprintf("[%s](#%s)", nameOf(t), strings.ToLower(nameOf(t)))
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Float64:
		return "number"
	default:
		return "integer"
	}
}
