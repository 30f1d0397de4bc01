package verdict

import (
	"cmp"
	"slices"
	"strings"

	"rdma_exporter/internal/health"
)

const (
	// maxLine limits a line, in bytes. node-problem-detector cuts longer ones.
	maxLine = 80
	// minPlace is how short a long name becomes at most.
	minPlace = 16
	prefix   = "rdma "
	do       = "; do="
)

// short returns the form of a kind that ends within the first 20 characters of a line, which is what sinfo shows.
func short(kind health.Kind) string {
	return cmp.Or(map[health.Kind]string{
		health.FindingNotification: "notify_failed", health.FindingContract: "contract", health.FindingExhausted: "exhausted",
		health.FindingCgroupNearLimit: "cgroup_limit", health.FindingMemlock: "memlock_limit",
		health.FindingTogether: "irqs_together", health.FindingIsolated: "irqs_isolated", health.FindingIncomplete: "inventory",
		health.FindingUnreadable: "hw_unreadable", health.FindingRefused: "counters", health.FindingSaturated: "saturated", health.FindingGPUUnavailable: "no_gpudirect",
	}[kind], string(kind))
}

// Line returns what is wrong in one line of at most 80 printable ASCII bytes, without anything that a shell expands.
// The place, such as mlx5_3/1, may be empty.
func Line(kind health.Kind, place, detail string, remedy health.Remedy) string {
	start, end := plain(prefix+short(kind)), do+plain(string(remedy))
	place, detail = strings.NewReplacer(" ", "_", ":", "_").Replace(plain(place)), ": "+plain(strings.ReplaceAll(detail, "'", ""))
	if place != "" {
		start += " "
	}
	room := maxLine - len(start) - len(end)
	if most := max(room-len(detail), minPlace); len(place) > most { // The end of a name tells it from others.
		place = place[:most/2-1] + ".." + place[len(place)-(most-1)/2:]
	}
	if most := room - len(place); len(detail) > most {
		words := strings.Fields(detail[:max(strings.LastIndexByte(detail[:most+1], ' '), 1)]) // Whole ones.
		for len(words) > 1 && slices.Contains([]string{"a", "and", "at", "be", "by", "cannot", "in", "is", "of", "the", "to"}, words[len(words)-1]) {
			words = words[:len(words)-1]
		}
		detail = strings.Join(words, " ")
	}
	return start + place + detail + end
}

// plain replaces what is not printable ASCII, or means something to a shell, a terminal or a reader of lines.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune("\"'`$;\\<>|&*?[]{}!#~", r) {
			return '_'
		}
		return r
	}, s)
}
