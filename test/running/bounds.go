package running

import (
	"slices"
	"strings"
)

// Unhurried returns the flags of an exporter, of the command serve or audit, and after
// them bounds of what a run may take that a busy machine keeps as well. Those that are
// among the flags stay as they are; beside a bound of the probes that is given, so does
// that of their measurements, which must fit into it.
func Unhurried(flags ...string) []string {
	given := func(name string) bool {
		return slices.ContainsFunc(flags, func(f string) bool { return f == name || strings.HasPrefix(f, name+"=") })
	}
	all := slices.Clone(flags)
	for _, bound := range []struct {
		flag, value string
		unless      []string
	}{
		{"--probe.timeout", "2m", nil},
		{"--notification.budget", "20s", []string{"--probe.timeout"}},
		{"--contract.timeout", "4m", nil},
		{"--inventory.timeout", "2m", nil},
		{"--hardware.timeout", "2m", nil},
	} {
		if !given(bound.flag) && !slices.ContainsFunc(bound.unless, given) {
			all = append(all, bound.flag+"="+bound.value)
		}
	}
	return all
}
