package simulated

import (
	"fmt"
	"slices"
	"strings"
)

// suggest says which of the valid words may have been meant, or all of them.
func suggest(word string, valid []string) string {
	var near []string
	best := max(2, len(word)/4) + 1
	for _, v := range valid {
		switch d := distance(strings.ToLower(word), strings.ToLower(v)); {
		case d < best:
			near, best = []string{v}, d
		case d == best && near != nil:
			near = append(near, v)
		}
	}
	const telling = 3 // bytes that a beginning must have to mean one word
	if near == nil && len(word) >= telling {
		for _, v := range valid {
			if strings.HasPrefix(v, word) {
				near = append(near, v)
			}
		}
	}
	switch {
	case near != nil:
		return "did you mean " + strings.Join(near, " or ") + "?"
	case len(valid) == 0:
		return ""
	default:
		return fmt.Sprintf("valid are %s", strings.Join(valid, ", "))
	}
}

// distance returns the number of bytes to insert, remove or replace to turn one
// word into the other, or, for words that cannot be near, merely a large number.
func distance(a, b string) int {
	const longest = 64 // keeps the time bounded, whatever the input
	if len(a) > longest || len(b) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			replace := row[j]
			if a[i] != b[j] {
				replace++
			}
			next[j+1] = slices.Min([]int{replace, row[j+1] + 1, next[j] + 1})
		}
		row = next
	}
	return row[len(b)]
}
