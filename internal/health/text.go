package health

import (
	"cmp"
	"fmt"
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

// prose is text.Name for longer texts.
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
	command := []string{"rdma resource show", text.Quoted(text.Name(kind)), by, text.Quoted(a.device)}
	if pid > 0 {
		command = append(command, "pid", strconv.Itoa(pid))
	}
	return strings.Join(append(command, filters...), " ")
}

func ownerName(pid int, comm string) string {
	return fmt.Sprintf("pid %d%s", pid, text.Around(" (", text.Name(comm), ")"))
}

// place returns the container, pod and job of a process or cgroup, to be appended to its name.
func place(containerID, podUID, job string) string {
	return text.Around(", container ", text.ShortID(containerID), "") + text.Around(", pod ", text.Name(podUID), "") + text.Around(", Slurm job ", text.Name(job), "")
}

func warningIf(bad bool) Severity {
	if bad {
		return SeverityWarning
	}
	return SeverityInfo
}

// find returns the first item that is what it asks for, or nil.
func find[T any](all []T, is func(*T) bool) *T {
	for i := range all {
		if is(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// list joins counts by type, the largest first: "37 qp, 2 pd".
func list(counts []state.TypeCount) string {
	var parts []string
	for _, c := range slices.SortedStableFunc(slices.Values(counts), state.TypeCount.CompareLargest) {
		parts = append(parts, text.Number(c.Objects)+" "+text.Name(c.Type))
	}
	if len(parts) > maxPerKind {
		parts = append(parts[:maxPerKind], "…")
	}
	return strings.Join(parts, ", ")
}
