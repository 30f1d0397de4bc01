package text

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxName is how many characters of a name from outside are shown where it need not be
	// whole.
	MaxName = 200
	// maxText is the most bytes of one text from outside: those of the longest path.
	maxText = 4096
	// shortID is how much of a container's id its runtime prints.
	shortID = 12
	// ellipsis stands for what was cut off.
	ellipsis = "…"
)

// Clean returns text from outside without what is not meant to be seen: bytes that are no
// text, and characters that steer a terminal or turn the direction of text, become U+FFFD,
// and every kind of space becomes a space. Of what is longer than 4096 bytes, the beginning
// is kept. Clean text stays as it is.
func Clean(s string) string {
	if len(s) <= maxText && !strings.ContainsFunc(s, func(r rune) bool { return Visible(r) != r || r == unicode.ReplacementChar }) {
		return s
	}
	// It is cut before, so that no text costs much, and after: what becomes U+FFFD grows.
	short := head(s)
	all := strings.Map(Visible, short)
	clean := head(all)
	if len(short) < len(s) || len(clean) < len(all) {
		clean += ellipsis
	}
	return clean
}

// Valid returns text from outside for a reader that takes any UTF-8 and nothing else, as
// Prometheus does in labels. Unlike Clean, it leaves names different that are valid and
// differ: two devices must not become one.
func Valid(s string) string { return strings.ToValidUTF8(s, string(unicode.ReplacementChar)) }

// Visible returns what Clean makes of a character.
func Visible(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case !unicode.IsPrint(r):
		return unicode.ReplacementChar
	default:
		return r
	}
}

// head returns the whole characters of the first maxText bytes.
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

// Truncate returns no more than n characters of a text, and a sign where there are more. It
// ends after a word if one ends in the second half.
func Truncate(s string, n int) string {
	for i := range s {
		if n == 0 {
			if space := strings.LastIndexByte(s[:i], ' '); space > i/2 {
				return s[:space] + " " + ellipsis
			}
			return s[:i] + ellipsis
		}
		n--
	}
	return s
}

// Quoted returns a word, clean, as a shell takes it for one word.
func Quoted(s string) string {
	// A backtick would end the command in the text around it.
	s = strings.ReplaceAll(Clean(s), "`", string(unicode.ReplacementChar))
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_.:@%+-", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Join joins the first of many texts, no more than most, and says how many more there are.
func Join(all []string, separator string, most int) string {
	more := len(all) - most
	if more <= 0 {
		return strings.Join(all, separator)
	}
	return strings.Join(all[:most], separator) + separator + "and " + Number(more) + " more"
}

// JoinWords joins the words that are not empty.
func JoinWords(separator string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), separator)
}

// ShortID returns as much of a container's id as its runtime prints, clean.
func ShortID(id string) string {
	n := 0
	for i := range id {
		if n == shortID {
			id = id[:i]
			break
		}
		n++
	}
	return Clean(id)
}
