package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName  = 200  // characters of a name from outside, where it may be truncated
	maxText  = 4096 // Bytes, as many as the longest path.
	ellipsis = "…"
)

// Clean returns printable text from outside. Invalid bytes, and characters that control a terminal or the direction of
// text, become U+FFFD. Each kind of space becomes a space. It truncates text to 4096 bytes. Clean text stays as it is.
func Clean(s string) string {
	if len(s) <= maxText && !strings.ContainsFunc(s, func(r rune) bool { return Visible(r) != r || r == unicode.ReplacementChar }) {
		return s
	}
	// It is truncated before, so that no text costs much, and after, because U+FFFD has three bytes.
	short := head(s)
	all := strings.Map(Visible, short)
	clean := head(all)
	if len(short) < len(s) || len(clean) < len(all) {
		clean += ellipsis
	}
	return clean
}

// Valid returns text from outside as valid UTF-8, which Prometheus requires in labels. Unlike Clean, it leaves valid
// names as they are, so that two devices do not become one.
func Valid(s string) string { return strings.ToValidUTF8(s, string(unicode.ReplacementChar)) }

// Visible returns the replacement of a character in Clean.
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

// Name returns a printable name from outside, limited to 200 characters.
func Name(s string) string { return Truncate(Clean(s), maxName) }

// Truncate returns at most n characters of a text, and an ellipsis if there are more. It ends after a word if one ends
// in the second half.
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

// OneLine returns the text of an error or of a log, cleaned, without space around it, and truncated to n characters.
func OneLine(s string, n int) string { return Truncate(Clean(strings.TrimSpace(s)), n) }

// Quoted returns a clean word, in quotes if a shell needs them.
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

// Join joins at most limit texts, and says how many more there are.
func Join(all []string, separator string, limit int) string {
	more := len(all) - limit
	if more <= 0 {
		return strings.Join(all, separator)
	}
	return strings.Join(all[:limit], separator) + separator + "and " + Number(more) + " more"
}

// JoinWords joins the words that are not empty.
func JoinWords(separator string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), separator)
}

// ShortID returns the first characters of a container's ID, as its runtime prints it.
func ShortID(id string) string { return Clean(fmt.Sprintf("%.12s", id)) }

// Around returns a text between two others. It is empty if the text is.
func Around(before, s, after string) string {
	if s == "" {
		return ""
	}
	return before + s + after
}
