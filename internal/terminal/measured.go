package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// groups are lists by key, in the order in which the keys were first added.
type groups[K comparable] struct {
	keys []K
	of   map[K][]string
}

func (g *groups[K]) add(key K, value string) {
	if g.of == nil {
		g.of = make(map[K][]string)
	}
	if g.of[key] == nil {
		g.keys = append(g.keys, key)
	}
	g.of[key] = append(g.of[key], value)
}

type sizes struct {
	Profiles []string
	Rows     [][]string
	Notes    []string
}

// sizesOf returns nil if no sizes were requested. Objects with the same sizes share a row.
func sizesOf(d *api.Device) *sizes {
	type key struct{ object, attribute string }
	var (
		v              sizes
		rows           groups[key]
		same           groups[string]
		inline, memory []string
	)
	for _, s := range d.Sizes() {
		if !slices.Contains(v.Profiles, s.Profile) {
			v.Profiles = append(v.Profiles, s.Profile)
		}
		rows.add(key{s.Object, s.Attribute}, sizeText(s))
		if note := sizeNote(s); note != "" || s.Short() {
			v.Notes = append(v.Notes, fmt.Sprintf("%s %s %s: %s%s.", s.Object, s.Profile, s.Attribute, sizeText(s), note))
		}
	}
	if len(rows.keys) == 0 {
		return nil
	}
	for _, r := range rows.keys {
		same.add(r.attribute+"\t"+strings.Join(rows.of[r], "\t"), r.object)
	}
	for _, cells := range same.keys {
		v.Rows = append(v.Rows, append([]string{strings.Join(same.of[cells], ", ")}, strings.Split(cells, "\t")...))
	}
	for _, m := range d.InlineResults() {
		inline = append(inline, api.Inline(m))
	}
	for _, p := range d.Detail() {
		for _, r := range p.Registrations {
			memory = append(memory, api.Registration(r))
		}
	}
	if len(inline) > 0 {
		v.Notes = append(v.Notes, "Maximum inline data: "+strings.Join(inline, ", ")+".")
	}
	if len(memory) > 0 {
		v.Notes = append(v.Notes, "Memory registered, with the time of the verb: "+strings.Join(memory, ", ")+".")
	}
	return &v
}

func sizeText(s state.Size) string {
	if s.Actual == s.Requested {
		return text.Number(s.Requested)
	}
	return text.Number(s.Requested) + "→" + text.Number(s.Actual)
}

func sizeNote(s state.Size) string {
	note := ""
	if s.Clamp != nil {
		note = fmt.Sprintf(" of %s configured (%s)", text.Number(s.Clamp.Configured), s.Clamp.Limit)
	}
	if s.Misreported() {
		note += fmt.Sprintf(" (queried %s)", text.Number(*s.Queried))
	}
	return note
}

// given returns the sizes that differ from those requested. QP types usually share them.
func given(d *api.Device) string {
	var parts []string
	all := d.Sizes()
	for _, s := range all {
		if note := sizeNote(s); note != "" || s.Actual != s.Requested {
			words := fmt.Sprintf("%s %s %s", s.Kind(), strings.ReplaceAll(s.Attribute, "_", " "), sizeText(s)+note)
			if !slices.Contains(parts, words) {
				parts = append(parts, words)
			}
		}
	}
	switch {
	case len(all) == 0:
		return ""
	case len(parts) == 0:
		return "as requested"
	default:
		return strings.Join(parts, "; ") + "; the rest as requested"
	}
}

func fullest(d api.Device) string {
	words, highest := "", 0.0
	for _, u := range d.Usage() {
		if used := float64(u.Objects) / float64(max(u.Limit, 1)); u.Limit > 0 && used > highest {
			words, highest = u.Type+" "+text.Percent(u.Objects, u.Limit), used
		}
	}
	return words
}

func notes(u api.Usage) string {
	orphaned, incomplete := cmp.Or(u.Orphaned, new(int64)), cmp.Or(u.Incomplete, new(state.Incomplete))
	return text.JoinWords(", ", text.Some(u.Leaked, "leaked"), text.Some(*orphaned, "orphaned"), string(incomplete.Reason))
}

func ownedBy(d *api.Device) string {
	var counts []state.TypeCount
	for _, u := range d.Usage() {
		if u.User > 0 {
			counts = append(counts, state.TypeCount{Type: u.Type, Objects: u.User})
		}
	}
	if len(counts) == 0 {
		return ""
	}
	words := api.Counts(counts) + " of programs"
	if owners := d.Resources.Inventory.LargestOwners(); len(owners) > 0 {
		words += fmt.Sprintf("; first pid %d (%s)", owners[0].PID, owners[0].Comm)
		if more := len(owners) - 1; more > 0 {
			words += fmt.Sprintf(" and %d more", more)
		}
	}
	return words
}

// gpuAdapters returns the readings of adapters on a host with GPUs, by name.
func gpuAdapters(s *api.Status) (all []*state.Hardware) {
	for i := range s.Devices {
		if h := s.Devices[i].Hardware; h != nil && h.Latest != nil && len(h.Latest.GPUs) > 0 {
			all = append(all, h.Latest)
		}
	}
	slices.SortFunc(all, func(a, b *state.Hardware) int { return strings.Compare(a.Device, b.Device) })
	return all
}

// nearest returns which GPUs are nearest to an adapter, or which adapters to a GPU.
func nearest(all []*state.Hardware, name string) string {
	var names groups[string] // by distance
	for _, h := range all {
		for i, g := range h.GPUs {
			if h.Device == name {
				names.add(g.Distance, fmt.Sprint("GPU", i))
			} else if g.PCI == name {
				names.add(g.Distance, h.Device)
			}
		}
	}
	const order = "PIX PXB PHB NODE SYS"
	slices.SortFunc(names.keys, func(a, b string) int { return strings.Index(order, a) - strings.Index(order, b) })
	return text.Join(names.of[names.keys[0]], ", ", maxNames)
}
