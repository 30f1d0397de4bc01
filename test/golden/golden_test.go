package golden_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/test/golden"
)

// recorder is a test that keeps what fails it.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatal(args ...any) { r.said = append(r.said, fmt.Sprint(args...)); panic(r) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

func failing(t *testing.T, f func(t testing.TB)) string {
	r := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(r) {
				panic(p)
			}
		}()
		f(r)
	}()
	return strings.Join(r.said, "\n")
}

func TestCheck(t *testing.T) {
	if golden.Updating() {
		t.Skip("with -update nothing is compared")
	}
	path := filepath.Join(t.TempDir(), "golden")
	if err := os.WriteFile(path, []byte("a\nbegin\nb\nend\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		check func(t testing.TB)
		want  string
	}{
		"the same":         {func(t testing.TB) { golden.Check(t, path, "a\nbegin\nb\nend\nc\n") }, ""},
		"another line":     {func(t testing.TB) { golden.Check(t, path, []byte("a\nbegin\nx\nend\nc\n")) }, "-b\n+x\n"},
		"no end of a line": {func(t testing.TB) { golden.Check(t, path, "a\nbegin\nb\nend\nc") }, "-c\n+c\n"},
		"another order":    {func(t testing.TB) { golden.Check(t, path, "c\nbegin\nb\nend\na\n") }, "in another order"},
		"no file":          {func(t testing.TB) { golden.Check(t, path+"x", "") }, "no such file"},
		"the same part":    {func(t testing.TB) { golden.CheckPart(t, path, "begin", "end", "b\n") }, ""},
		"another part":     {func(t testing.TB) { golden.CheckPart(t, path, "begin", "end", "") }, "-b\n"},
		"no such part":     {func(t testing.TB) { golden.CheckPart(t, path, "end", "begin", "") }, "does not have one part"},
	} {
		if said := failing(t, c.check); !strings.Contains(said, c.want) || (said == "") != (c.want == "") {
			t.Errorf("%s: it said %q, want %q", name, said, c.want)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	got := golden.JSON(t, map[string]any{"a": []int{1, 2}, "b": map[string]any{"c": "[x]", "d": map[string]int{"e": 1}}, "f": strings.Repeat("x", 300)})
	want := "{\n \"a\": [ 1, 2 ],\n \"b\": {\n  \"c\": \"[x]\",\n  \"d\": { \"e\": 1 }\n },\n \"f\": \"" + strings.Repeat("x", 300) + "\"\n}\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
