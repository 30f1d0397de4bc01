package ceiling

import (
	"fmt"
	"strings"
	"time"

	"rdma_exporter/internal/text"
)

// seconds are those of a report as a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// name returns so many objects of the type of a report by name.
func (r *Report) name(n int64) string {
	if r.QPType != "" {
		return text.Count(n, strings.ToUpper(r.QPType)+" queue pair", strings.ToUpper(r.QPType)+" queue pairs")
	}
	return text.Objects(n, string(r.Type))
}

// Progress says in a line how far a climb has got.
func (r *Report) Progress() string {
	if r.Phase == PhaseClimbing {
		claimed := ""
		if r.Claimed != nil {
			claimed = fmt.Sprintf(" of %s claimed", text.Number(*r.Claimed))
		}
		return fmt.Sprintf("%s: created %s%s, %s", r.Device, r.name(r.Objects), claimed, text.Bytes(r.MemoryBytes))
	}
	return fmt.Sprintf("%s: %s left to be given back", r.Device, r.name(r.Left))
}

// Verdict says in a few lines what a climb that has ended found.
func (r *Report) Verdict() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.Device, r.name(r.Objects))
	if r.Before != nil && *r.Before > 0 {
		fmt.Fprintf(&b, ", beside %s that there %s before", text.Number(*r.Before), text.Either(*r.Before, "was", "were"))
	}
	switch {
	case r.Claimed == nil:
	case *r.Claimed > 0:
		fmt.Fprintf(&b, "; the device claims %s (%s), of which these are %s", text.Number(*r.Claimed), r.Limit, text.Percent(r.Objects, *r.Claimed))
	default:
		fmt.Fprintf(&b, "; the device claims none (%s is %d)", r.Limit, *r.Claimed)
	}
	kind := "\nNo ceiling was found"
	if r.EndedBy.Found() {
		kind = "\nA ceiling"
	}
	fmt.Fprintf(&b, "%s: ended by %s", kind, r.EndedBy)
	if r.Detail != "" {
		fmt.Fprintf(&b, ": %s", r.Detail)
	}
	fmt.Fprintf(&b, "\nIt took %s and %s. ", text.Duration(seconds(r.Seconds)), text.Bytes(r.MemoryBytes))
	switch r.GivenBack {
	case ByVerbs:
		fmt.Fprintf(&b, "Everything was given back, in %s.\n", text.Duration(seconds(r.GivingBackSeconds)))
	case ByKernel:
		b.WriteString("The kernel took everything back as the process ended")
		if r.LeftDetail != "" {
			fmt.Fprintf(&b, "; %s not destroyed before: %s", text.Count(r.Left, "was", "were"), r.LeftDetail)
		}
		b.WriteString(".\n")
	default:
		fmt.Fprintf(&b, "It has not been given back: %s\n", r.LeftDetail)
	}
	return b.String()
}
