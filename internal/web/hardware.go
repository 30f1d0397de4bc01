package web

import (
	"fmt"
	"strings"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// countersView are the counters of a device that are not zero.
type countersView struct {
	Summary string
	Rows    []counterRow
	// Odd describes counters that could not be read or no longer count, and Drops those that
	// were lower than before.
	Odd, Drops []string
}

type counterRow struct {
	api.Counter
	Port int
}

// countersOf returns nil if there is nothing to show.
func countersOf(h *state.HardwareState) *countersView {
	var v countersView
	port := func(n int) string {
		if n == 0 {
			return "the device"
		}
		return fmt.Sprintf("port %d", n)
	}
	add := func(n int, raw []state.Counter, refused []state.RefusedCounters) {
		for _, r := range refused {
			v.Odd = append(v.Odd, "The kernel refuses to read "+text.JoinWords(": ", fmt.Sprintf("%s of %s", r.Group, port(n)), r.Errno, r.Detail))
		}
		for _, name := range api.Saturated(h.Latest, raw) {
			v.Odd = append(v.Odd, fmt.Sprintf("%s of %s is saturated and no longer counts", name, port(n)))
		}
	}
	add(0, h.Latest.Counters, h.Latest.Refused)
	for i := range h.Latest.Ports {
		p := &h.Latest.Ports[i]
		add(p.Number, p.Counters, p.Refused)
		for _, c := range api.Counters(h.Latest, p) {
			v.Rows = append(v.Rows, counterRow{c, p.Number})
		}
	}
	for _, d := range h.Drops {
		v.Drops = append(v.Drops, fmt.Sprintf("%s (%s) of %s was less than before: %s, %s.", d.Name, d.Group, port(d.Port),
			text.Plural(int64(d.Resets), "reset"), text.Count(int64(d.Wraps), "time at its maximum", "times at its maximum")))
	}
	var words []string
	for _, w := range []struct {
		n    int
		what string
	}{{len(v.Rows), "not zero"}, {len(v.Odd), "saturated or refused"}, {len(v.Drops), "less than before"}} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", w.n, w.what))
		}
	}
	if v.Summary = strings.Join(words, ", "); v.Summary == "" {
		return nil
	}
	return &v
}
