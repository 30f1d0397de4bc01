package verdict

import (
	"cmp"
	"strings"

	"rdma_exporter/internal/health"
)

const (
	// MaxLine limits a line, in bytes. node-problem-detector cuts longer ones.
	MaxLine = 80
	// minDevice is what a long name of a device is shortened to, at most.
	minDevice = 15
	prefix    = "rdma "
	do        = "; do="
)

// short returns the form of a kind that ends within the first 20 characters of a line, which is what sinfo shows.
func short(kind string) string {
	return cmp.Or(map[string]string{
		string(health.FindingNotification): "notify_failed", string(health.FindingContract): "contract",
		string(health.FindingExhausted): "exhausted", string(health.FindingCgroupNearLimit): "cgroup_limit",
		string(health.FindingMemlock): "memlock_limit", string(health.FindingTogether): "irqs_together",
		string(health.FindingIsolated): "irqs_isolated", string(health.FindingIncomplete): "inventory",
		string(health.FindingUnreadable): "hw_unreadable", string(health.FindingRefused): "counters",
		string(health.FindingSaturated): "saturated", string(health.FindingAcceptanceUnused): "acceptance",
		string(health.ProblemDiscovery): "discovery", string(health.ProblemStart): "cannot_start",
	}[kind], kind)
}

// Line returns what is wrong in one line of at most 80 printable ASCII bytes, without anything that a shell expands.
// The place, such as mlx5_3/1, may be empty.
func Line(kind, place, detail string, remedy health.Remedy) string {
	start, end := prefix+plain(short(kind)), do+plain(string(remedy))
	place, detail = strings.NewReplacer(" ", "_", ":", "_").Replace(plain(place)), plain(strings.ReplaceAll(detail, "'", ""))
	if place != "" {
		start += " "
	}
	const colon = ": "
	room := MaxLine - len(start) - len(colon) - len(end)
	place = middle(place, max(room-len(detail), minDevice))
	detail = detail[:max(min(len(detail), room-len(place)), 0)]
	return start + place + colon + strings.TrimRight(detail, " ,:(") + end
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

// middle shortens a name to n bytes. Its end, which tells it from others, stays.
func middle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const gap = ".."
	tail := (n - len(gap)) / 2
	return s[:n-len(gap)-tail] + gap + s[len(s)-tail:]
}

// IsLine reports whether a line could be one of Line.
func IsLine(s string) bool {
	said, remedy, _ := strings.Cut(s, do)
	return len(s) <= MaxLine && strings.HasPrefix(s, prefix) && plain(said) == said && plain(remedy) == remedy
}
