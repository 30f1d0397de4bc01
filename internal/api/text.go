package api

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxText is the most bytes of one text.
	maxText = 4096
	// maxItems is the most items of one list.
	maxItems = 4096
)

// Clean returns text from outside without what is not meant to be seen: bytes that
// are no text, and characters that steer a terminal or turn the direction of text,
// become U+FFFD, and every kind of space becomes a space. What is too long is cut.
func Clean(s string) string {
	// It is cut before, so that no text costs much, and after: what becomes U+FFFD grows.
	short := head(s)
	all := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		default:
			return r
		}
	}, short)
	clean := head(all)
	if len(short) < len(s) || len(clean) < len(all) {
		clean += "…"
	}
	return clean
}

// head returns the whole characters that a text begins with, as many as a status may
// have of it.
func head(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// cut returns no more items of a list than a status may have.
func cut[T any](list []T) []T { return list[:min(len(list), maxItems)] }

// count returns a number of things, which is never less than none.
func count[T ~int | ~int64](n T) T { return max(n, 0) }
