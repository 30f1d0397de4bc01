package text_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"rdma_exporter/internal/text"
)

func TestClean(t *testing.T) {
	long := strings.Repeat("ä", 4000)
	cases[string]{
		"":                        "",
		"mlx5_0":                  "mlx5_0",
		"a\nb\tc\u2028d\u00a0e":   "a b c d e",
		"\xff\x00\x1b[31m\u202ex": "\ufffd\ufffd\ufffd[31m\ufffdx",
		"\ufffd":                  "\ufffd",
		"<b>\"'":                  "<b>\"'",
		long[:4096]:               long[:4096],
		long:                      long[:4096] + "…",
		"x" + long:                "x" + long[:4094] + "…",
		strings.Repeat("\x80", 5): strings.Repeat("\ufffd", 5),
		// No character is longer than four bytes, so no more are taken for the rest of one.
		strings.Repeat("x", 4090) + strings.Repeat("\x80", 10): strings.Repeat("x", 4090) + "\ufffd\ufffd…",
	}.check(t, text.Clean)
}

func TestValid(t *testing.T) {
	cases[string]{"": "", "a\x1b\n\u202e": "a\x1b\n\u202e", "a\xff\xfe": "a\ufffd", "\ufffd": "\ufffd"}.check(t, text.Valid)
}

// FuzzWords verifies that text from outside is printable, not too long, and one word for a shell.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"mlx5_0", "a b'c`d", "\x1b[31m\u202e\xff\x00\u00a0\n", ""} {
		for _, n := range []int{1, 1366, 2048, 4096, 9000} {
			f.Add(strings.Repeat(s, n), 3)
		}
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		clean := text.Clean(s)
		if len(clean) > 4096+len("…") {
			t.Errorf("%q: %d bytes", s, len(clean))
		}
		if again := text.Clean(clean); again != clean {
			t.Errorf("%q: got %q, and of that %q", s, clean, again)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); len(s) < 100 && !strings.ContainsFunc(want, odd) && utf8.ValidString(s) && clean != s {
			t.Errorf("%q: got %q", s, clean)
		}
		if valid := text.Valid(s); !utf8.ValidString(valid) || utf8.ValidString(s) && valid != s {
			t.Errorf("%q: got %q", s, valid)
		}
		n = int(uint(n) % 300)
		cut := text.Truncate(clean, n)
		if got, all := utf8.RuneCountInString(cut), utf8.RuneCountInString(clean); got > n+2 || all <= n && cut != clean {
			t.Errorf("%q cut to %d: %q", clean, n, cut)
		}
		word := text.Quoted(s)
		for _, shown := range []string{clean, cut, word, text.ShortID(s), text.Objects(1, s)} {
			if !utf8.ValidString(shown) || strings.ContainsFunc(shown, odd) {
				t.Errorf("%q: got %q", s, shown)
			}
		}
		if got, want := unquoted(word), strings.ReplaceAll(clean, "`", "\ufffd"); got != want {
			t.Errorf("%q: a shell takes %s for %q, want %q", s, word, got, want)
		}
	})
}

func odd(r rune) bool { return !unicode.IsPrint(r) }

// unquoted returns the word that a shell reads, or a NUL if it reads anything else.
func unquoted(word string) string {
	var s strings.Builder
	quoted := word == ""
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case c == '\'':
			quoted = !quoted
		case quoted:
			s.WriteByte(c)
		case c == '\\' && i+1 < len(word):
			i++
			s.WriteByte(word[i])
		case strings.IndexByte(" $&|;<>()*?[]#~=!\"`\\{}", c) >= 0 || c >= utf8.RuneSelf:
			return "\x00"
		default:
			s.WriteByte(c)
		}
	}
	if quoted {
		return "\x00"
	}
	return s.String()
}

// TestQuoted asks a shell.
func TestQuoted(t *testing.T) {
	words := []string{"mlx5_0", "", "a b", "it's", "'", "$HOME", "*", "~", "x;y", `\`, "a\nb", "ä", "/sys/fs/cgroup/a@b:c,d"}
	command := "printf '%s\\n'"
	for _, w := range words {
		command += " " + text.Quoted(w)
	}
	out, err := exec.Command("sh", "-c", command).CombinedOutput()
	want := strings.ReplaceAll(strings.Join(words, "\x00"), "\n", " ")
	if got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); err != nil || !slices.Equal(got, strings.Split(want, "\x00")) {
		t.Errorf("%s: %q, %v", command, got, err)
	}
	cases[string]{"azAZ09/_.:@%+-": "azAZ09/_.:@%+-", "": "''", "a`b": "'a\ufffdb'", "it's": `'it'\''s'`}.check(t, text.Quoted)
}

func TestCut(t *testing.T) {
	cases[string]{
		"": "", "12345678": "12345678", "äöüäöüäöü": "äöüäöüäö…", "one two three": "one two …", "one to three": "one to …", "one twothree": "one twot…", "four fives": "four fiv…", "a bcdefghijk": "a bcdefg…", "        9": "        …",
	}.check(t, func(s string) string { return text.Truncate(s, 8) })
}

func TestOneLine(t *testing.T) {
	cases[string]{"": "", "\n a\tb\x1b\n": "a b\ufffd", "12345678": "12345678", "1234é6789": "1234é678…", "\xff": "\ufffd"}.
		check(t, func(s string) string { return text.OneLine(s, 8) })
}

func TestJoin(t *testing.T) {
	all := []string{"a", "b", "c", "d"}
	cases[int]{4: "a; b; c; d", 9: "a; b; c; d", 3: "a; b; c; and 1 more", 1: "a; and 3 more"}.
		check(t, func(most int) string { return text.Join(all, "; ", most) })
	if got := text.Join(nil, ", ", 3); got != "" {
		t.Error(got)
	}
}

func TestShortID(t *testing.T) {
	cases[string]{"": "", "0123456789ab": "0123456789ab", "0123456789abcdef": "0123456789ab", "ääääääääääääää": "ääääääääääää", "\xff\x1b": "\ufffd\ufffd"}.
		check(t, text.ShortID)
}
