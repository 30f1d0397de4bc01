package terminal

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/text"
)

// sizes writes what was asked for and what was given: a line for all that came out
// alike, and a column for each profile.
func (p *page) sizes(d *api.Device) {
	if len(d.Sizes) == 0 {
		return
	}
	type row struct {
		objects   []string
		attribute string
		cells     []string
	}
	var profiles, notes []string
	var rows []*row
	byName := make(map[[2]string]*row)
	for _, s := range d.Sizes {
		if !slices.Contains(profiles, s.Profile) {
			profiles = append(profiles, s.Profile)
		}
	}
	for i := range d.Sizes {
		s := &d.Sizes[i]
		key := [2]string{s.Object, s.Attribute}
		r, ok := byName[key]
		if !ok {
			r = &row{objects: []string{s.Object}, attribute: s.Attribute, cells: make([]string, len(profiles))}
			byName[key] = r
			rows = append(rows, r)
		}
		r.cells[slices.Index(profiles, s.Profile)] = sizeText(s)
		notes = append(notes, sizeNotes(s)...)
	}
	var merged []*row
	for _, r := range rows {
		same := slices.IndexFunc(merged, func(m *row) bool { return m.attribute == r.attribute && slices.Equal(m.cells, r.cells) })
		if same >= 0 {
			merged[same].objects = append(merged[same].objects, r.objects...)
		} else {
			merged = append(merged, r)
		}
	}

	p.blank()
	p.pad(2)
	p.wrap(2, 2, p.of(strong, "Asked"), p.of(plain, " and, where it differs, "), p.of(strong, "→given"))
	t := &table{indent: 2, head: append([]string{"", ""}, profiles...), right: make(map[int]bool)}
	for i := range profiles {
		t.right[i+2] = true
	}
	for _, r := range merged {
		cells := [][]span{p.cell(plain, strings.Join(r.objects, ", ")), p.cell(plain, r.attribute)}
		for _, c := range r.cells {
			cells = append(cells, p.cell(plain, c))
		}
		t.add(cells...)
	}
	p.table(t)
	if len(d.MaxInline) > 0 {
		var most []string
		for _, m := range d.MaxInline {
			most = append(most, fmt.Sprintf("%s %s (%s)", m.Type, text.Number(m.Bytes), m.Meaning()))
		}
		notes = append(notes, "Most inline data, in bytes: "+strings.Join(most, ", ")+".")
	}
	if len(d.Registrations) > 0 {
		var each []string
		for _, r := range d.Registrations {
			each = append(each, r.Words())
		}
		notes = append(notes, "Memory registered, by the time of the verb: "+strings.Join(each, ", ")+".")
	}
	for _, n := range notes {
		p.pad(2)
		p.wrap(2, 4, p.of(plain, n))
	}
}

// givenWhat says what a device gave other than what was asked for, by object and size, each
// profile in its order.
func givenWhat(d *api.Device) string {
	if len(d.Sizes) == 0 {
		return ""
	}
	var names []string
	texts := make(map[string][]string)
	for i := range d.Sizes {
		s := &d.Sizes[i]
		told := s.Queried != nil && *s.Queried != s.Actual
		if s.Actual == s.Requested && s.Configured == nil && !told {
			continue
		}
		object, _, _ := strings.Cut(s.Object, "_") // Types of queue pair mostly get the same.
		name := object + " " + strings.ReplaceAll(s.Attribute, "_", " ")
		words := sizeText(s)
		if s.Configured != nil {
			words += fmt.Sprintf(" of %s configured", text.Number(*s.Configured))
		}
		if told {
			words += fmt.Sprintf(" (queried %s)", text.Number(*s.Queried))
		}
		if texts[name] == nil {
			names = append(names, name)
		}
		if !slices.Contains(texts[name], words) {
			texts[name] = append(texts[name], words)
		}
	}
	if len(names) == 0 {
		return "as asked"
	}
	var parts []string
	for _, name := range names {
		parts = append(parts, name+" "+strings.Join(texts[name], ", "))
	}
	return strings.Join(parts, "; ") + "; all else as asked"
}

func sizeText(s *api.Size) string {
	if s.Actual == s.Requested {
		return text.Number(s.Requested)
	}
	return text.Number(s.Requested) + "→" + text.Number(s.Actual)
}

// sizeNotes says what a size's two numbers do not.
func sizeNotes(s *api.Size) []string {
	var notes []string
	name := fmt.Sprintf("%s %s %s", s.Object, s.Profile, s.Attribute)
	if s.Actual < s.Requested {
		notes = append(notes, fmt.Sprintf("Less than asked for: %s, %s of %s.", name, text.Number(s.Actual), text.Number(s.Requested)))
	}
	if s.Configured != nil {
		notes = append(notes, fmt.Sprintf("Asked for less than configured: %s, %s, because %s is %s.", name, text.Number(*s.Configured), s.LimitName, text.Number(s.Requested)))
	}
	if s.Queried != nil && *s.Queried != s.Actual {
		notes = append(notes, fmt.Sprintf("Reported differently by a query: %s, %s.", name, text.Number(*s.Queried)))
	}
	return notes
}
