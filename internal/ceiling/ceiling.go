// Package ceiling finds out how many objects of a type a device really gives: it creates the
// smallest ones until one is refused or a budget is used up, and destroys them all.
package ceiling

import (
	"fmt"
	"strings"
	"time"

	"rdma_exporter/internal/refusal"
	"rdma_exporter/internal/text"
)

// Types returns the types of objects, by the kernel's names.
func Types() []string { return []string{"cq", "qp", "srq", "mr", "pd", "ah"} }

// The ends of a search, besides the causes of a refusal.
const (
	EndMemory      refusal.Cause = "memory_budget"
	EndTime        refusal.Cause = "time_budget"
	EndInterrupted refusal.Cause = "interrupted"
)

// The ways in which objects are given back: each is destroyed, or the process ends.
const (
	ByVerbs  = "verbs"
	ByKernel = "kernel"
)

// Report is the state of a search. docs/ceiling.md describes its fields.
type Report struct {
	Version  int    `json:"version"`
	Device   string `json:"device"`
	Type     string `json:"type"`
	QPType   string `json:"qp_type,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	Objects  int64  `json:"objects"`
	// Claimed is the value of Limit. It is nil if unknown, and so is Before.
	Limit   string `json:"limit"`
	Claimed *int64 `json:"claimed,omitempty"`
	Before  *int64 `json:"before,omitempty"`
	// EndedBy is empty while objects are created, and GivenBack until the search has ended.
	EndedBy           refusal.Cause `json:"ended_by,omitempty"`
	Verb              string        `json:"verb,omitempty"`
	Errno             string        `json:"errno,omitempty"`
	Detail            string        `json:"detail,omitempty"`
	Began             time.Time     `json:"began"`
	Seconds           float64       `json:"seconds"`
	GivingBackSeconds float64       `json:"giving_back_seconds"`
	MemoryBytes       int64         `json:"memory_bytes"`
	GivenBack         string        `json:"given_back,omitempty"`
	Left              int64         `json:"left"`
	LeftDetail        string        `json:"left_detail,omitempty"`
}

// Abandoned returns the complete report of a search that is given up. The end of the process
// gives the objects back.
func (r *Report) Abandoned(by refusal.Cause, why string) *Report {
	a := *r
	if a.EndedBy == "" {
		a.EndedBy, a.Detail, a.Seconds = by, why, time.Since(a.Began).Seconds()
	}
	a.GivenBack, a.LeftDetail = ByKernel, why
	return &a
}

func (r *Report) count(n int64) string {
	if r.QPType != "" {
		return text.Plural(n, strings.ToUpper(r.QPType)+" queue pair")
	}
	return text.Objects(n, r.Type)
}

// Progress says in one line how far the search has got.
func (r *Report) Progress() string {
	if r.EndedBy == "" {
		return fmt.Sprintf("%s: created %s, %s", r.Device, r.count(r.Objects), text.Bytes(r.MemoryBytes))
	}
	return fmt.Sprintf("%s: %s left to destroy", r.Device, r.count(r.Left))
}

// String describes the result in three lines.
func (r *Report) String() string {
	var before, claimed string
	if r.Before != nil && *r.Before > 0 {
		before = fmt.Sprintf(" in addition to %s", text.Number(*r.Before))
	}
	if r.Claimed != nil {
		claimed = fmt.Sprintf("; the device claims %s (%s)", text.Number(*r.Claimed), r.Limit)
	}
	found := "No ceiling was found"
	if r.EndedBy.IsLimit() {
		found = "A ceiling"
	}
	back := fmt.Sprintf("Everything was destroyed, in %s", text.Seconds(r.GivingBackSeconds))
	if r.GivenBack == ByKernel {
		back = fmt.Sprintf("The kernel takes back %s when this process ends: %s", r.count(r.Left), r.LeftDetail)
	}
	return fmt.Sprintf("%s: %s%s%s\n%s: ended by %s: %s\nIt took %s and %s. %s.\n", r.Device, r.count(r.Objects), before, claimed,
		found, r.EndedBy, r.Detail, text.Seconds(r.Seconds), text.Bytes(r.MemoryBytes), back)
}
