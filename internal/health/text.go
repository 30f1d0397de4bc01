package health

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rdma_exporter/internal/state"
)

const (
	// maxWord is the longest word from outside, and maxProse the longest text, in
	// runes. Paths of cgroups are part of commands, and so are never cut.
	maxWord  = 200
	maxProse = 500
	// maxFew is how many of many things a message lists.
	maxFew = 3
	// shortID is how much of a container's id is told: as much as its runtime prints.
	shortID = 12
)

// printable returns s without what a terminal might take for a command, or a reader
// for something else: anything that is not printable is replaced.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// word is printable for what need not be whole.
func word(s string) string { return cut(printable(s), maxWord) }

// prose is word for texts of several words, which may have had several lines.
func prose(s string) string { return cut(printable(strings.Join(strings.Fields(s), " ")), maxProse) }

// cut returns no more than n runes of a text.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// few joins the first of many texts, and says how many there are beyond.
func few(texts []string, separator string) string {
	more := len(texts) - maxFew
	if more <= 0 {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(texts[:maxFew], separator), separator, more)
}

// plural counts things.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// quoted returns a printable word as a shell takes it for one word.
func quoted(s string) string {
	// A backtick would end the command in the text around it.
	s = strings.ReplaceAll(s, "`", string(unicode.ReplacementChar))
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_.:@%+-", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// show returns the command that lists the objects of a type, those of one process if
// pid is not 0. Extra are further filters.
func (a *assessor) show(kind string, pid int, extra ...string) string {
	// rdma(8) knows queue pairs and CM ids by port, and all else by device.
	by := "dev"
	if kind == "qp" || kind == "cm_id" {
		by = "link"
	}
	command := []string{"rdma resource show", quoted(word(kind)), by, quoted(a.device)}
	if pid > 0 {
		command = append(command, "pid", strconv.Itoa(pid))
	}
	return strings.Join(append(command, extra...), " ")
}

// noun returns what n objects of a type are called, of any type if kind is empty.
func noun(kind string, n int64) string {
	name, known := map[string]string{
		"": "object", "pd": "protection domain", "cq": "completion queue", "qp": "queue pair", "cm_id": "CM id",
		"mr": "memory region", "ctx": "opened device", "srq": "shared receive queue", "comp_channel": "completion channel",
	}[kind]
	if !known {
		return fmt.Sprintf("%s of type %s", noun("", n), word(kind))
	}
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}

// ownerName returns how a process is called in a subject.
func ownerName(o *state.Owner) string {
	if o.Comm == "" {
		return fmt.Sprintf("pid %d", o.PID)
	}
	return fmt.Sprintf("pid %d (%s)", o.PID, word(o.Comm))
}

// place returns where a process or cgroup belongs, as an addition to its name.
func place(containerID, podUID string) string {
	var s string
	if containerID != "" {
		s += ", container " + short(containerID)
	}
	if podUID != "" {
		s += ", pod " + word(podUID)
	}
	return s
}

// short returns the beginning of a container's id.
func short(id string) string {
	id = printable(id)
	n := 0
	for i := range id {
		if n == shortID {
			return id[:i]
		}
		n++
	}
	return id
}

// list joins counts by type, the largest first: "37 qp, 2 pd".
func list(counts []state.TypeCount) string {
	counts = slices.Clone(counts)
	slices.SortStableFunc(counts, func(a, b state.TypeCount) int {
		if a.Objects != b.Objects {
			if a.Objects > b.Objects {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Type, b.Type)
	})
	parts := make([]string, 0, len(counts))
	for _, c := range counts {
		if len(parts) == maxPerKind {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%d %s", c.Objects, word(c.Type)))
	}
	return strings.Join(parts, ", ")
}

// sum adds counts up, and stops at the most that there can be. Counts below nothing
// do not count.
func sum(counts ...int64) int64 {
	var total int64
	for _, n := range counts {
		if n <= 0 {
			continue
		}
		if total > math.MaxInt64-n {
			return math.MaxInt64
		}
		total += n
	}
	return total
}

// total adds up counts by type, those of types that occur twice as well.
func total(counts []state.TypeCount) (all []state.TypeCount, objects int64) {
	index := make(map[string]int)
	for _, c := range counts {
		if c.Objects <= 0 {
			continue
		}
		objects = sum(objects, c.Objects)
		i, ok := index[c.Type]
		if !ok {
			i = len(all)
			index[c.Type] = i
			all = append(all, state.TypeCount{Type: c.Type})
		}
		all[i].Objects = sum(all[i].Objects, c.Objects)
	}
	return all, objects
}

// percent returns used as part of limit, rounded down so that 100 % is really all.
func percent(used, limit int64) string {
	p := float64(used) / float64(limit) * 100
	if p >= 1000 {
		return "more than 999 %"
	}
	return strconv.FormatFloat(math.Floor(p*10+1e-6)/10, 'f', -1, 64) + " %"
}

// bytes returns a size for people.
func bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	size, unit := float64(n), 0
	for size >= 1024 && unit < 6 {
		size /= 1024
		unit++
	}
	return strconv.FormatFloat(math.Floor(size*10)/10, 'f', -1, 64) + " " + [...]string{"", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[unit]
}

// moment returns a time for people.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }
