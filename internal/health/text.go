package health

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// maxProse is the longest text from outside, in characters.
	maxProse = 500
	// maxFew is how many of many things a message lists.
	maxFew = 3
	// maxGist is the longest gist of evidence, in characters.
	maxGist = 160
)

// word returns a name from outside, no longer than need be. Paths of cgroups are part of
// commands, and so are never cut.
func word(s string) string { return text.Cut(text.Clean(s), text.MaxName) }

// prose is word for texts of several words.
func prose(s string) string {
	return text.Cut(text.Clean(strings.Join(strings.Fields(s), " ")), maxProse)
}

// show returns the command that lists the objects of a type, those of one process if
// pid is not 0. Extra are further filters.
func (a *assessor) show(kind string, pid int, extra ...string) string {
	// rdma(8) knows queue pairs and CM ids by port, and all else by device.
	by := "dev"
	if kind == "qp" || kind == "cm_id" {
		by = "link"
	}
	command := []string{"rdma resource show", text.Quoted(word(kind)), by, text.Quoted(a.device)}
	if pid > 0 {
		command = append(command, "pid", strconv.Itoa(pid))
	}
	return strings.Join(append(command, extra...), " ")
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
		s += ", container " + text.ShortID(containerID)
	}
	if podUID != "" {
		s += ", pod " + word(podUID)
	}
	return s
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
		parts = append(parts, text.Number(c.Objects)+" "+word(c.Type))
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
