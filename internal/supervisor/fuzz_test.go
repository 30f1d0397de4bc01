package supervisor

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzStderr verifies that of any standard error of a child its end is kept, within bounds, no
// matter how it arrives.
func FuzzStderr(f *testing.F) {
	for _, s := range []string{
		"", "oh\n", "1\n2\n3\n4\n5", "log\npanic: oh no\n\ngoroutine 1\n", "fatal error: all", "SIGSEGV: segmentation violation\nPC=0x1\n",
		"\x1b[2J\x00\xff\n", strings.Repeat("x", maxTail+1), "panic: " + strings.Repeat("é", maxFatal),
	} {
		f.Add(s, uint16(3))
	}
	f.Fuzz(func(t *testing.T, text string, step uint16) {
		var whole, pieces tail
		_, _ = whole.Write([]byte(text))
		for rest := []byte(text); len(rest) > 0; {
			n, err := pieces.Write(rest[:min(int(step)+1, len(rest))])
			if err != nil || n == 0 {
				t.Fatalf("Write: %d, %v", n, err)
			}
			rest = rest[n:]
		}
		got := whole.get()
		if got != pieces.get() {
			t.Fatalf("it depends on how it arrives: %+v, %+v", got, pieces.get())
		}
		if want := strings.ToValidUTF8(text[max(0, len(text)-maxTail):], "\uFFFD"); got.tail != want || len(got.fatal) > maxFatal || !strings.Contains(text, got.fatal) {
			t.Fatalf("kept %+v", got)
		}
		if r := got.reason(); len(r) > max(maxFatal, maxLast) || !utf8.ValidString(r) || strings.ContainsAny(r, "\n\r\t\x00\x1b") {
			t.Fatalf("reason %q", r)
		}
	})
}

// FuzzNames makes sure that of all names that a folder can have, those that are taken
// for devices can be the value of a label and one argument, and none is lost.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"mlx5_0\x00rxe0\x00rxe0", "..\x00.\x00", "--help\x00a b\x00\xff\x00$(id)\n", strings.Repeat("x", maxName+1)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names := strings.Split(text, "\x00")
		good, bad := sift(slices.Clone(names))
		for _, n := range names {
			if slices.Contains(good, n) == slices.Contains(bad, n) {
				t.Fatalf("%q is in both or in neither of %q and %q", n, good, bad)
			}
		}
		for i, n := range good {
			if n == "" || n == "." || n == ".." || len(n) > maxName || !utf8.ValidString(n) || strings.ContainsAny(n, "/\x00") {
				t.Fatalf("%q is taken", n)
			}
			if i > 0 && good[i-1] >= n {
				t.Fatalf("%q comes after %q", n, good[i-1])
			}
		}
	})
}
