package collector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The collectors: parts of the metrics that can be switched on and off, by flags of
// their names.
const (
	Sizes          = "sizes"
	Memory         = "memory"
	Limits         = "limits"
	Verbs          = "verbs"
	VerbHistograms = "verb-histograms"
	Latency        = "latency"
	Vectors        = "vectors"
	Contracts      = "contracts"
	Inventory      = "inventory"
	Owners         = "owners"
	OwnersPID      = "owner-pids"
	Cgroups        = "cgroups"
	Counters       = "counters"
	RawCounters    = "raw-counters"
	Links          = "links"
	Adapter        = "adapter"
	Interrupts     = "interrupts"
	GIDs           = "gids"
)

// Part is a collector, as people choose it.
type Part struct {
	Name string
	// Help describes its metrics in a phrase.
	Help string
	// On is true if it is on by default.
	On bool
}

// Parts returns every collector.
func Parts() []Part {
	return []Part{
		{Sizes, "requested and actual sizes", true},
		{Memory, "memory that an object costs the process creating it", false},
		{Limits, "limits that a device reports", false},
		{Verbs, "duration of control verbs, and errors of all verbs", true},
		{VerbHistograms, "distribution of the duration of each verb", false},
		{Latency, "notification and completion latency, and events that went wrong", true},
		{Vectors, "notification latency of each completion vector", true},
		{Contracts, "whether devices keep the contracts of the man pages", true},
		{Inventory, "objects that the kernel tracks on a device", true},
		{Owners, "owners of these objects, and the memory they lock", true},
		{OwnersPID, "label pid of owners: one series for each process", false},
		{Cgroups, "what the RDMA controller counts and allows", false},
		{Counters, "adapter counters, under names common to all drivers", true},
		{RawCounters, "every counter under its driver's name", false},
		{Links, "links of ports: rate, width, and state changes", true},
		{Adapter, "the adapter behind a device, its place on the PCI bus, and errors there", true},
		{Interrupts, "interrupts of completion vectors, and the CPUs that serve them", false},
		{GIDs, "addresses of ports by type, and their changes", true},
	}
}

// Choice is true for each collector that is on.
type Choice map[string]bool

// Defaults returns the collectors that are on by default.
func Defaults() Choice {
	c := make(Choice)
	for _, p := range Parts() {
		c[p.Name] = p.On
	}
	return c
}

// Hardware reports whether a collector is on that needs readings of the hardware.
func (c Choice) Hardware() bool {
	return c[Counters] || c[RawCounters] || c[Links] || c[Adapter] || c[Interrupts] || c[GIDs]
}

// of returns the collectors for a scrape, out of those that are on: the named ones, or all
// except the excluded ones.
func (c Choice) of(collect, exclude []string) (Choice, error) {
	if len(collect) > 0 && len(exclude) > 0 {
		return nil, errors.New("use collect[] or exclude[], not both")
	}
	chosen := maps.Clone(c)
	if len(collect) > 0 {
		clear(chosen)
	}
	for _, name := range slices.Concat(collect, exclude) {
		on, ok := c[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("there is no collector %q, but %s", name, strings.Join(slices.Sorted(maps.Keys(c)), ", "))
		case !on && len(collect) > 0:
			return nil, fmt.Errorf("the collector %s is off: start the exporter with --collector.%s", name, name)
		}
		chosen[name] = len(collect) > 0
	}
	return chosen, nil
}
