package health

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	maxProse = 500 // Characters of a text from outside.
	maxFew   = 3   // Items that a message lists.
	maxGist  = 160 // Characters of what was observed, within a message.
)

// word returns a printable name from outside. Cgroup paths become part of commands and are never truncated.
func word(s string) string { return text.Truncate(text.Clean(s), text.MaxName) }

// prose is word for longer texts.
func prose(s string) string {
	return text.Truncate(text.Clean(strings.Join(strings.Fields(s), " ")), maxProse)
}

func reason(s string) string { return cmp.Or(prose(s), "no reason given") }

// show returns the command that lists the objects of a type, of one process if pid is not 0.
func (a *assessor) show(kind string, pid int, filters ...string) string {
	// rdma(8) lists queue pairs and CM ids by port, and other objects by device.
	by := "dev"
	if kind == "qp" || kind == "cm_id" {
		by = "link"
	}
	command := []string{"rdma resource show", text.Quoted(word(kind)), by, text.Quoted(a.device)}
	if pid > 0 {
		command = append(command, "pid", strconv.Itoa(pid))
	}
	return strings.Join(append(command, filters...), " ")
}

// around returns a text between two others. Empty if the text is.
func around(before, s, after string) string {
	if s == "" {
		return ""
	}
	return before + s + after
}

func ownerName(pid int, comm string) string {
	return fmt.Sprintf("pid %d%s", pid, around(" (", word(comm), ")"))
}

// place returns the container, pod and job of a process or cgroup, to be appended to its name.
func place(containerID, podUID, job string) string {
	return around(", container ", text.ShortID(containerID), "") + around(", pod ", word(podUID), "") + around(", Slurm job ", word(job), "")
}

func warningIf(bad bool) Severity {
	if bad {
		return SeverityWarning
	}
	return SeverityInfo
}

// find returns the first item that is what it asks for. Nil if there is none.
func find[T any](all []T, is func(*T) bool) *T {
	for i := range all {
		if is(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

func largestFirst(a, b state.TypeCount) int {
	return cmp.Or(cmp.Compare(b.Objects, a.Objects), strings.Compare(a.Type, b.Type))
}

// list joins counts by type, the largest first: "37 qp, 2 pd".
func list(counts []state.TypeCount) string {
	var parts []string
	for _, c := range slices.SortedStableFunc(slices.Values(counts), largestFirst) {
		parts = append(parts, text.Number(c.Objects)+" "+word(c.Type))
	}
	if len(parts) > maxPerKind {
		parts = append(parts[:maxPerKind], "…")
	}
	return strings.Join(parts, ", ")
}

// sum adds counts without overflow. It ignores negative ones.
func sum(counts ...int64) int64 {
	var total int64
	for _, n := range counts {
		total += min(max(n, 0), math.MaxInt64-total)
	}
	return total
}

// total returns one count for each type, and the number of all objects.
func total(counts []state.TypeCount) (all []state.TypeCount, objects int64) {
	for _, c := range counts {
		objects = sum(objects, c.Objects)
		if c.Objects > 0 && !slices.ContainsFunc(all, func(other state.TypeCount) bool { return other.Type == c.Type }) {
			all = append(all, state.TypeCount{Type: c.Type, Objects: state.CountOf(counts, c.Type)})
		}
	}
	return all, objects
}
