// Package golden compares what the tests see with files of the repository. With the flag
// -update, which each test program that imports it has, it writes them instead.
package golden

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files, and what follows from the code in docs/") //nolint:gochecknoglobals // the flags of a test program are

// Updating tells whether files are written. It is for tests that do more with them than
// to compare them.
func Updating() bool { return *update }

// Check compares got with a file, or writes it. The test fails if they differ, and says in
// which lines.
func Check[T ~string | ~[]byte](t testing.TB, path string, got T) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	if string(want) != string(got) {
		d := Diff(string(want), string(got))
		if d == "" {
			d = "the same lines, in another order or number"
		}
		t.Errorf("%s differs (-update rewrites it):\n%s", path, d)
	}
}

// A Recorder collects the text of a golden file that has a section for each case of a test.
type Recorder struct{ text strings.Builder }

// Record returns a Recorder. When the test ends, its text is compared with testdata/NAME.txt.
func Record(t testing.TB) *Recorder {
	t.Helper()
	r := new(Recorder)
	t.Cleanup(func() {
		t.Helper()
		Check(t, "testdata/"+t.Name()+".txt", r.text.String())
	})
	return r
}

// Add adds a section.
func (r *Recorder) Add(name string, lines ...string) {
	r.text.WriteString("== " + name + "\n")
	for _, line := range lines {
		r.text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// JSON returns a value as lines of JSON, for [Check]. An object or a list of plain values has
// a line of its own, if it is short.
func JSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	folded := regexp.MustCompile(`[{\[]\n[^{}\[\]]*[}\]]`).ReplaceAllStringFunc(string(b), func(plain string) string {
		line := regexp.MustCompile(`\n *`).ReplaceAllString(plain, " ")
		if len(line) > 200 {
			return plain
		}
		return line
	})
	return folded + "\n"
}

// CheckPart is [Check] for the part of a file after the line begin and before the line end,
// each of which the file has once.
func CheckPart(t testing.TB, path, begin, end, got string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin+"\n")
	_, after, closed := strings.Cut(rest, end+"\n")
	if !ok || !closed || strings.Contains(after, begin+"\n") {
		t.Fatalf("%s does not have one part between %q and %q", path, begin, end)
	}
	Check(t, path, before+begin+"\n"+got+end+"\n"+after)
}

// Diff returns the lines that only one of two texts has, in whatever order.
func Diff(want, got string) string {
	var out strings.Builder
	only := func(sign, a, b string) {
		has := make(map[string]bool)
		for line := range strings.Lines(b) {
			has[line] = true
		}
		for line := range strings.Lines(a) {
			if !has[line] {
				out.WriteString(sign + strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	only("-", want, got)
	only("+", got, want)
	return out.String()
}
