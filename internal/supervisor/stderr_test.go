package supervisor

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTail(t *testing.T) {
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
		{"not printable", "a\x1b[1m\x00b\xff\n", "a [1m b\uFFFD"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, step := range []int{1, 7, maxTail, 1 << 20} {
				var w tail
				for text := []byte(tt.text); len(text) > 0; {
					n, err := w.Write(text[:min(step, len(text))])
					if err != nil || n == 0 {
						t.Fatalf("Write: %d, %v", n, err)
					}
					text = text[n:]
				}
				got := w.get()
				if got.reason() != tt.reason {
					t.Errorf("in steps of %d: reason %q, want %q", step, got.reason(), tt.reason)
				}
				if kept := tt.text[max(0, len(tt.text)-maxTail):]; got.tail != strings.ToValidUTF8(kept, "\uFFFD") {
					t.Errorf("in steps of %d: kept %d bytes", step, len(got.tail))
				}
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for _, s := range []string{strings.Repeat("é", 99), strings.Repeat("日", 99), strings.Repeat("\xff", 99), "a\n\tb"} {
		got := oneLine(s, 50)
		if len(got) > 50 || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\t") {
			t.Errorf("%q became %q", s, got)
		}
	}
}
