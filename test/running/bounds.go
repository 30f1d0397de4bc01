package running

import (
	"slices"
	"strings"
)

// Unhurried returns the flags of the exporter's commands serve or audit, and adds timeouts that
// a busy machine keeps, unless they are among the flags.
func Unhurried(flags ...string) []string {
	given := func(name string) bool {
		return slices.ContainsFunc(flags, func(f string) bool { return f == name || strings.HasPrefix(f, name+"=") })
	}
	all := slices.Clone(flags)
	for _, bound := range []struct {
		flag, value string
	}{
		{"--probe.timeout", "2m"},
		{"--contract.timeout", "4m"},
		{"--inventory.timeout", "2m"},
	} {
		if !given(bound.flag) {
			all = append(all, bound.flag+"="+bound.value)
		}
	}
	return all
}
