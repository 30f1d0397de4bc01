package supervisor

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

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
