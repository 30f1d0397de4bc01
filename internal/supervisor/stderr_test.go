package supervisor

import (
	"strings"
	"testing"
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
		{"not printable", "a\x1b[1m\x00b\xff\n", "a [1m b\uFFFD"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var w tail
			_, _ = w.Write([]byte(tt.text))
			if got := w.get().reason(); got != tt.reason {
				t.Errorf("reason %q, want %q", got, tt.reason)
			}
		})
	}
}
