package probe

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

func latency(m measurement, s verbs.Samples) state.Latency {
	l := state.Latency{
		Port: m.port, Path: m.path, Mode: m.mode, Vector: m.vector,
		Samples: s.Latency, Arms: s.Arm,
		Missed: s.Missed, Spurious: s.Spurious, Misdirected: s.Misdirected, Missing: s.Missing,
		Stopped: s.Stopped.String(),
	}
	for _, status := range s.Unsuccessful {
		l.Unsuccessful = append(l.Unsuccessful, status.String())
	}
	l.Summarise()
	return l
}

// describe records a failure for each kind of error in a measurement: how often it occurred
// and what that means for a program.
func (n *notification) describe(m measurement, l state.Latency) {
	note := func(count int, what, meaning string) {
		if count > 0 {
			n.Failures = append(n.Failures, state.Failure{
				Subject: m.subject(),
				Message: fmt.Sprintf("%s, while %s went well: %s", what, plural(l.Count, "sample"), meaning),
			})
		}
	}
	note(l.Missed,
		fmt.Sprintf("no event came within %s for %s that the queue had", n.cfg.Deadline, plural(l.Missed, "completion")),
		fmt.Sprintf("a program that sleeps until the event would hang (/proc/interrupts shows whether completion vector %d interrupts at all)", m.vector))
	note(l.Spurious,
		plural(l.Spurious, "event")+" came while the queue was empty",
		"a program is woken for nothing, and one that expects a completion with each event goes wrong")
	note(l.Misdirected,
		plural(l.Misdirected, "event")+" came on another channel or named another queue",
		"a program that sleeps until the event of its own queue would hang")
	note(l.Missing,
		fmt.Sprintf("%s had not come within %s", plural(l.Missing, "completion"), n.cfg.Deadline),
		"a work request or its completion was lost or is very late, and a program that waits for it hangs as long")
	want, meaning := verbs.WCSuccess, "messages from the port to itself do not get through"
	if m.path == state.PathFlush {
		want, meaning = verbs.WCWRFlushErr, "a request posted to a QP in the error state is to be flushed"
	}
	note(len(l.Unsuccessful),
		fmt.Sprintf("%s had the status %s instead of %s", plural(len(l.Unsuccessful), "completion"), distinct(l.Unsuccessful), want),
		meaning)
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func distinct(words []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(words))), ", ")
}
