package check

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// part is what docs/providers.md has of the files of testdata.
var part = regexp.MustCompile(`(?s)(<!-- What follows [^\n]*-->\n).*?(<!-- Here ends [^\n]*-->\n)`)

// TestPage compares docs/providers.md with what was seen on paper adapters.
func TestPage(t *testing.T) {
	const page = "../../../docs/providers.md"
	was := running.Must(os.ReadFile(page))(t)
	if n := len(part.FindAll(was, -1)); n != 1 {
		t.Fatalf("%s has %d parts that are written, not 1", page, n)
	}
	want := part.ReplaceAllString(string(was), "${1}"+strings.ReplaceAll(table(t), "$", "$$")+"${2}")
	golden.Check(t, page, want)
}

// TestFiles makes sure that each file is whole.
func TestFiles(t *testing.T) {
	for _, s := range seen(t) {
		if s.driver == "" || s.run == "" || s.judged+len(s.unjudged) == 0 {
			t.Errorf("%s has no driver, no run or no verdicts: %+v", s.file, s)
		}
	}
}

// sight is the exporter's report on one adapter.
type sight struct {
	file, driver, run         string
	skipped                   []string
	known, violated, unjudged []string
	judged                    int
}

func seen(t testing.TB) []sight {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	var all []sight
	for _, file := range files {
		text := running.Must(os.ReadFile(file))(t)
		all = append(all, sightOf(strings.TrimSuffix(filepath.Base(file), ".txt"), string(text)))
	}
	return all
}

func sightOf(name, text string) sight {
	s, probe := sight{file: name}, ""
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name, what, _ := strings.Cut(rest, ": "); {
		case word == "driver":
			s.driver = rest
		case word == "run":
			s.run, _, _ = strings.Cut(rest, ",")
		case word == "probe":
			probe, _, _ = strings.Cut(rest, " ")
		case word == "skipped":
			switch {
			case strings.HasPrefix(rest, ":"):
				name, what = probe, strings.TrimPrefix(rest, ": ") // all of it
			case probe == "srq":
				name = probe + " " + name // the sizes of others are not skipped
			}
			if what != "not_supported" {
				name += " (" + what + ")"
			}
			s.skipped = append(s.skipped, name)
		case word == "known":
			s.known = append(s.known, rest)
		case word != "contract":
		case strings.HasPrefix(what, "violated, known"):
			s.known = append(s.known, name)
			s.judged++
		case strings.HasPrefix(what, "violated"):
			s.violated = append(s.violated, name)
			s.judged++
		case strings.HasPrefix(what, "skipped"):
			s.unjudged = append(s.unjudged, name)
		default:
			s.judged++
		}
	}
	return s
}

func table(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`
| adapter | run | not probed, for it is not offered (or why else) | contracts that cannot be checked | broken, a known erratum | broken, and not known |
|---|---|---|---|---|---|
`)
	executed := map[string]bool{} // by driver and contract
	met := map[string]bool{}
	for _, s := range seen(t) {
		met[s.driver] = true
		for _, c := range s.known {
			executed[s.driver+" "+c] = true
		}
		b.WriteString(s.row())
	}
	b.WriteString(`
Which contracts [each driver is known to break](reference/contracts.md#known-of-drivers) was seen on the real driver (rxe, siw) or on a paper adapter, or only read in the source:

| driver | seen | read; the paper adapter does not show it | read |
|---|---|---|---|
`)
	type row struct{ seen, hidden, read []string }
	rows := map[string]*row{}
	for _, f := range errata.All() {
		r := rows[f.Driver]
		if r == nil {
			r = &row{}
			rows[f.Driver] = r
		}
		name := "`" + f.Contract + "`"
		switch {
		case executed[f.Driver+" "+f.Contract], f.Driver == "rxe", f.Driver == "siw":
			r.seen = append(r.seen, name)
		case met[f.Driver]:
			r.hidden = append(r.hidden, name)
		default:
			r.read = append(r.read, name)
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(rows)) {
		r := rows[driver]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", driver, list(r.seen), list(r.hidden), list(r.read))
	}
	b.WriteString("\n")
	return b.String()
}

func (s sight) row() string {
	return fmt.Sprintf("| `%s` | %s | %s | %d of %d | %s | %s |\n",
		s.file, s.run, list(s.skipped), len(s.unjudged), len(s.unjudged)+s.judged, list(s.known), list(s.violated))
}

func list(words []string) string {
	words = slices.Compact(slices.Sorted(slices.Values(words)))
	if len(words) == 0 {
		return "–"
	}
	return strings.Join(words, ", ")
}
