package web

import "testing"

func TestBadgeStyleOf(t *testing.T) {
	for class, words := range map[string][]string{
		"ok":       {"ok", "holds", "active", "active_defer"},
		"info":     {"info"},
		"unknown":  {"unknown", "skipped"},
		"warning":  {"warning", "down", "violated", "anything"},
		"critical": {"critical", "failed", "timeout", "crashed"},
	} {
		for _, word := range words {
			if got := badgeStyleOf(word); got.class != class || got.symbol == "" {
				t.Errorf("%s: got %+v, want %s", word, got, class)
			}
		}
	}
}
