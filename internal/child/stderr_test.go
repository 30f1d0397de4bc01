package child

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestReason verifies which line explains the end of a child. The kept part of standard error
// is in FuzzStderr.
func TestReason(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("goroutine 1 [running]\n", 1000)
	tests := []struct {
		name, text, reason string
	}{
		{"nothing", "", ""},
		{"blank", " \n\n", ""},
		{"one line", "oh\n", "oh"},
		{"last lines", "1\n2\n3\n4\n5", "3 | 4 | 5"},
		{"panic", "log\npanic: oh no\n\ngoroutine 1\n", "panic: oh no"},
		{"panic before a long trace", "panic: oh no\n" + long, "panic: oh no"},
		{"first of two", "panic: first\npanic: second\n", "panic: first"},
		{"unfinished panic", "fatal error: all", "fatal error: all"},
		{"signal in C", "free(): invalid pointer\nSIGABRT: abort\nPC=0x1\n" + long, "SIGABRT: abort"},
		{"no panic", "don't panic: please\n", "don't panic: please"},
		{"not printable", "a\x1b[1m\x00b\xff\n", "a\uFFFD[1m\uFFFDb\uFFFD"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var w tail
			_, _ = w.Write([]byte(tt.text))
			if got := w.get().Reason(); got != tt.reason {
				t.Errorf("reason %q, want %q", got, tt.reason)
			}
		})
	}
}

// FuzzStderr verifies that of any standard error of a child its end is kept, within bounds, no
// matter how it arrives.
func FuzzStderr(f *testing.F) {
	for _, s := range []string{
		"", "oh\n", "1\n2\n3\n4\n5", "log\npanic: oh no\n\ngoroutine 1\n", "fatal error: all", "SIGSEGV: segmentation violation\nPC=0x1\n",
		"\x1b[2J\x00\xff\n", strings.Repeat("x", MaxTail+1), "panic: " + strings.Repeat("é", maxFatal),
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
		if want := strings.ToValidUTF8(text[max(0, len(text)-MaxTail):], "\uFFFD"); got.Tail != want || len(got.Fatal) > maxFatal || !strings.Contains(text, got.Fatal) {
			t.Fatalf("kept %+v", got)
		}
		if r := got.Reason(); utf8.RuneCountInString(r) > max(maxFatal, maxLast)+2 || !utf8.ValidString(r) || strings.ContainsAny(r, "\n\r\t\x00\x1b") {
			t.Fatalf("reason %q", r)
		}
	})
}
