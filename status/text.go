package status

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
	if len(s) > maxText {
		end := maxText
		for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "…"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		default:
			return r
		}
	}, s)
}

// cut returns no more items of a list than a status may have.
func cut[T any](list []T) []T { return list[:min(len(list), maxItems)] }

// count returns a number of things, which is never less than none.
func count[T ~int | ~int64](n T) T { return max(n, 0) }
