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
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
)

// prologue is what docs/reference/status-page.md says before the fields.
const prologue = `# Status page and JSON

The fields below come from the comments in ` + "`internal/api/`, `internal/health/` and `internal/state/`; `go test ./internal/api -update`" + ` rewrites
this page.

## The page

` + "`/`" + ` serves a page for people, from the same state as the metrics. Loading it touches no device. It needs no scripts and
loads nothing from elsewhere. It works on a phone, in dark mode, and on paper. From the top:

- **How the host is**, in a word: critical, warning, unknown (a device has not been probed yet, or not lately) or ok;
  how many devices and findings there are; a banner if the devices are [simulated](simulator.md).
  If no device was found, or devices could not be listed, what to do about it.
- **What is wrong, and what to do**: every [finding](findings.md) that is critical or a warning, worst harm first,
  with links to the devices. What several devices share, with the same remedy, appears once, with its consequences
  below it. Long evidence is folded.
- **Devices**: one line each, worst first, with health, ports, and the outcome and age of the last probe run.
- **Device by device**: a few devices in full. If there are many, only those in trouble, if these are few; click a name
  for the others. ` + "`/#device-NAME`" + ` links to one.

Each device shows:

- its findings, including those of severity info
- its runs, with the errors as reported, and what each probe could not do
- what the device says it is
- [its hardware, as the kernel reports it](../hardware.md): the adapter and its place in the host; ports with network
  device, changes of state, and GIDs. A PCI link or port that is slower than it could be stands out. Folded: counters
  that are not zero, and the interrupts of completion vectors
- the latency of notification and of completion, each with its distribution, all on one time scale
- a strip with a cell for each completion vector. Slow, faulty and not yet measured ones stand out
- sizes asked for and given. Those that are less than asked for, that a query contradicts, or that were cut down to a
  limit stand out
- the [contracts](contracts.md), with evidence for violated ones
- the objects of all programs, against the limits, with their owners.

A result is marked old if another run should have followed it: for probes, after twice ` + "`--probe.max-backoff`" + ` and some
time for runs under way. Latencies are those of the last run. For completion vectors the page has the latest
measurement of each, since a run may not have time for all.

` + "`/?refresh=30`" + ` reloads the page every 30 seconds; 5 to 3600 are possible.

Links are relative, so a proxy can serve the page below any path that ends in ` + "`/`" + `. Only those to the documentation, if
[configured](configuration.md#where-the-documentation-is), lead elsewhere.

The page and the JSON are each made at most once a second; requests in between get the same copy. They do not count
against ` + "`--web.max-requests`" + `, so a crowd in front of the page keeps no scrape out. For a host with 64 devices of 64
completion vectors the page has some 2 MB and the JSON 1.5 MB, each less than 0.2 MB compressed with gzip, as most
clients take them.

With [basic authentication](configuration.md#tls-and-authentication) both need the password, like all other paths.
Without it, everybody who can reach the exporter can read them, including names of processes, containers and cgroups.

## The JSON

` + "`/api/v1/status`" + ` has the same as JSON, for GET and HEAD:

` + "```sh" + `
curl -s http://localhost:10879/api/v1/status | jq -r '.health'
curl -s http://localhost:10879/api/v1/status | jq -r '.devices[] | [.name, .health, .headline] | @tsv'
curl -s http://localhost:10879/api/v1/status | jq -r '.devices[].findings[] | select(.severity == "critical") | .message'
` + "```" + `

- **Version**: the number in the path is that of the types. Within a version, fields may be added, but never renamed,
  removed or given another meaning: ignore those you don't know. New words for kinds and reasons may appear as well.
- **Status code**: 200, whatever the health. Orchestrators should use ` + "`/-/healthy` and `/-/ready`" + `.
- **Values**: times are RFC 3339 in UTC, durations are in seconds. A field marked optional is absent if there is
  nothing to say.
- **Text** from a device, a driver or another process is valid UTF-8 without control characters. Nothing else makes it
  safe: escape it where you show it.
- **Limits**: no list has more than 4096 items, and no text much more than 4096 bytes.
- **Numbers** are integers up to 2^63-1, except seconds and temperatures. Readers that use floating-point, such as
  JavaScript and older versions of jq, are not exact beyond 2^53.

`

// comments are what the sources say of types, fields and constants.
type comments struct {
	types, fields, constants map[string]string
}

// parse reads the comments of a package: of types by name, of fields by type and
// name, of constants by type and value.
func parse(t *testing.T, folder string) comments {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	c := comments{types: make(map[string]string), fields: make(map[string]string), constants: make(map[string]string)}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				c.add(d)
			}
		}
	}
	return c
}

func (c *comments) add(d *ast.GenDecl) {
	constants := ""
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			c.types[spec.Name.Name] = text(d.Doc)
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range fields.Fields.List {
				for _, name := range f.Names {
					c.fields[spec.Name.Name+"."+name.Name] = text(f.Doc)
				}
			}
		case *ast.ValueSpec:
			of, ok := spec.Type.(*ast.Ident)
			if !ok || len(spec.Values) != 1 {
				continue
			}
			// Constants that share a comment are named in it.
			if doc := text(spec.Doc); doc != "" || !strings.Contains(constants, spec.Names[0].Name) {
				constants = doc
			}
			value, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				continue
			}
			_, meaning, _ := strings.Cut(constants, ": ")
			c.constants[of.Name+"."+strings.Trim(value.Value, `"`)] = meaning
		}
	}
}

func text(g *ast.CommentGroup) string { return strings.Join(strings.Fields(g.Text()), " ") }

// word is a type of word, with all that there are.
type word struct {
	name   string
	values []string
}

// words returns the types of word that a status has.
func words() map[reflect.Type]word {
	all := make(map[reflect.Type]word)
	addWords(all, "health", api.Healths())
	addWords(all, "kind of problem", health.ProblemKinds())
	addWords(all, "severity", health.Severities())
	addWords(all, "harm", health.Harms())
	addWords(all, "severity of a contract", state.Severities())
	addWords(all, "outcome", state.Outcomes())
	addWords(all, "kind of run", append(state.Kinds(), state.KindHardware))
	addWords(all, "status of a probe", []state.Status{state.StatusOK, state.StatusFailed, state.StatusSkipped})
	addWords(all, "reason for a skip", []state.SkipReason{
		state.SkipNotSupported, state.SkipNotPermitted, state.SkipNeeds, state.SkipPortDown, state.SkipBudget, state.SkipTimeout, state.SkipCrashed,
	})
	addWords(all, "reason to leave a device alone", state.LightReasons())
	addWords(all, "path", state.LatencyPaths())
	addWords(all, "inline result", state.InlineResults())
	addWords(all, "kind of memory", state.RegisteredMemories())
	addWords(all, "result of a registration", state.RegistrationResults())
	addWords(all, "what refused memory", state.AllRefusedBy())
	addWords(all, "mode", state.LatencyModes())
	addWords(all, "verdict", state.Verdicts())
	addWords(all, "reason for incompleteness", state.IncompleteReasons())
	addWords(all, "kind of finding", health.Kinds())
	addWords(all, "group of counters", state.CounterGroups())
	return all
}

func addWords[T ~string](all map[reflect.Type]word, name string, values []T) {
	w := word{name: name}
	for _, v := range values {
		w.values = append(w.values, string(v))
	}
	all[reflect.TypeFor[T]()] = w
}

// documentation writes docs/reference/status-page.md.
type documentation struct {
	strings.Builder
	t      *testing.T
	status comments
	report comments
	health comments
	words  map[reflect.Type]word
	// left are the types that are still to be told of, and seen are all.
	left []reflect.Type
	seen map[reflect.Type]bool
}

// TestDocs makes sure that docs/reference/status-page.md has every field, each with its meaning.
func TestDocs(t *testing.T) {
	d := &documentation{t: t, status: parse(t, "."), report: parse(t, "../state"), health: parse(t, "../health"), words: words(), seen: make(map[reflect.Type]bool)}
	d.WriteString(prologue)
	d.refer(reflect.TypeFor[api.Status]())
	for len(d.left) > 0 {
		next := d.left[0]
		d.left = d.left[1:]
		d.object(next)
	}
	d.WriteString("## Words\n")
	for of, w := range d.words {
		if !d.seen[of] {
			t.Errorf("no field has a %s", w.name)
		}
	}
	for _, of := range d.order() {
		d.word(of)
	}
	golden.Check(t, "../../docs/reference/status-page.md", d.String())
}

// order returns the types of word in the order of the types that have them.
func (d *documentation) order() (order []reflect.Type) {
	seen := make(map[reflect.Type]bool)
	var visit func(reflect.Type)
	visit = func(of reflect.Type) {
		for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if seen[of] || of == reflect.TypeFor[time.Time]() {
			return
		}
		seen[of] = true
		if _, is := d.words[of]; is {
			order = append(order, of)
		}
		if of.Kind() == reflect.Struct {
			for f := range of.Fields() {
				visit(f.Type)
			}
		}
	}
	visit(reflect.TypeFor[api.Status]())
	return order
}

// object tells of an object and its fields.
func (d *documentation) object(of reflect.Type) {
	name := of.Name()
	about := d.status.types[name]
	if about == "" {
		d.t.Errorf("%s has no comment", name)
	}
	fmt.Fprintf(d, "## %s\n\n%s\n\n| field | type | meaning |\n|---|---|---|\n", name, about)
	for f := range of.Fields() {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		meaning := d.status.fields[name+"."+f.Name]
		if tag == "" || meaning == "" || !strings.HasSuffix(meaning, ".") || strings.Contains(meaning, "|") {
			d.t.Errorf("%s.%s: tag %q, meaning %q", name, f.Name, tag, meaning)
		}
		kind := d.refer(f.Type)
		if strings.HasSuffix(tag, "_celsius") {
			kind = "degrees Celsius"
		}
		optional := strings.HasPrefix(options, "omit")
		if optional {
			kind += ", optional"
		}
		if (f.Type.Kind() == reflect.Pointer) && !optional {
			d.t.Errorf("%s.%s may be null", name, f.Name)
		}
		fmt.Fprintf(d, "| `%s` | %s | %s |\n", tag, kind, meaning)
	}
	d.WriteString("\n")
}

// refer returns what a type is called, and sees to it that it is told of.
func (d *documentation) refer(of reflect.Type) string {
	if of == reflect.TypeFor[time.Time]() {
		return "time"
	}
	if w, is := d.words[of]; is {
		d.seen[of] = true
		return fmt.Sprintf("[%s](#%s)", w.name, strings.ReplaceAll(w.name, " ", "-"))
	}
	switch of.Kind() {
	case reflect.Pointer:
		return d.refer(of.Elem())
	case reflect.Slice:
		return "list of " + d.refer(of.Elem())
	case reflect.Struct:
		if !d.seen[of] {
			d.seen[of] = true
			d.left = append(d.left, of)
		}
		return fmt.Sprintf("[%s](#%s)", of.Name(), strings.ToLower(of.Name()))
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		if of.Name() != "string" {
			d.t.Errorf("nothing is known of the words of %s", of)
		}
		return "text"
	case reflect.Float64:
		return "seconds"
	default:
		return "number"
	}
}

// word tells of the words of one type.
func (d *documentation) word(of reflect.Type) {
	w := d.words[of]
	fmt.Fprintf(d, "\n### %s\n\n", w.name)
	source := d.report
	if of.PkgPath() == reflect.TypeFor[health.Kind]().PkgPath() {
		source = d.health
	}
	if of == reflect.TypeFor[health.Kind]() {
		d.WriteString("[findings.md](findings.md) has them all.\n")
		return
	}
	for _, value := range w.values {
		meaning, known := source.constants[of.Name()+"."+value]
		if !known {
			d.t.Errorf("%s has no constant for %s", of, value)
		}
		if meaning != "" {
			meaning = ": " + strings.TrimSuffix(meaning, ".")
		}
		fmt.Fprintf(d, "- `%s`%s\n", value, meaning)
	}
}
