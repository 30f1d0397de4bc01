package terminal

import (
	"fmt"
	"strings"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/text"
)

// resources writes what the kernel holds of the device: for each type how near it is
// to its limit, then who has it. Of a device that never described itself no limit is known.
func (p *page) resources(r *api.Resources, described bool) {
	if r == nil || len(r.Types) == 0 {
		return
	}
	p.blank()
	p.line(p.of(plain, "  "), p.of(strong, "Objects"))
	t := &table{
		indent: 2, head: []string{"type", "used", "limit", "", "full", "user", "kernel", "notes"},
		right: map[int]bool{1: true, 2: true, 4: true, 5: true, 6: true}, pictures: map[int]bool{3: true},
	}
	for i := range r.Types {
		n := &r.Types[i]
		limit, bar, full := "none", span{}, ""
		if !described {
			limit = "?"
		}
		if n.Limit != nil {
			used := part(n.Objects, *n.Limit)
			limit, bar, full = text.Number(*n.Limit), p.gauge(used), percent(n.Objects, *n.Limit)
		}
		notes, s := typeNotes(n)
		t.add(
			p.cell(plain, n.Type), p.cell(strong, text.Number(n.Objects)), p.cell(plain, limit), []span{bar}, p.cell(plain, full),
			p.cell(plain, text.Number(n.User)), p.cell(plain, text.Number(n.Kernel)), p.cell(s, notes),
		)
	}
	p.table(t)
	var states []string
	for _, q := range r.QueuePairs {
		states = append(states, fmt.Sprintf("%s %s %s", text.Number(q.Objects), q.Type, q.State))
	}
	if len(states) > 0 {
		p.pad(2)
		p.wrap(2, 4, p.of(plain, "Queue pairs: "+strings.Join(states, ", ")+"."))
	}
	var ended []string
	for i := range r.Types {
		if e := r.Types[i].Exhausted; e != nil {
			ended = append(ended, fmt.Sprintf("%s %s (%s, %s)", text.Number(e.Objects), r.Types[i].Type, e.Errno, text.Moment(e.At)))
		}
	}
	if len(ended) > 0 {
		p.pad(2)
		p.wrap(2, 4, p.of(plain, "Exhausted at "+strings.Join(ended, ", ")+"."))
	}
	p.owners(r)
	p.growers(r)
	p.left(r)
	p.cgroups(r.Cgroups)
}

// gauge returns a bar that is as full as a part says.
func (p *page) gauge(part float64) span {
	const cells = 10
	full, empty := "#", "."
	if p.screen.Unicode {
		full, empty = "█", "░"
	}
	s := good
	switch {
	case part >= 0.95:
		s = bad
	case part >= 0.8:
		s = odd
	}
	n := min(int(part*cells+0.5), cells)
	if part < 1 {
		n = min(n, cells-1) // Only what is full looks so.
	}
	return p.of(s, strings.Repeat(full, n)+strings.Repeat(empty, cells-n))
}

// typeNotes says what is odd about the objects of a type.
func typeNotes(n *api.Type) (string, style) {
	var notes []string
	s := faint
	if n.Leaked > 0 {
		notes, s = append(notes, text.Number(n.Leaked)+" leaked"), bad
	}
	if n.Orphaned != nil && *n.Orphaned > 0 {
		notes, s = append(notes, text.Number(*n.Orphaned)+" orphaned"), bad
	}
	if n.Incomplete != "" {
		notes = append(notes, string(n.Incomplete))
	}
	return strings.Join(notes, ", "), s
}

// owners writes who owns objects.
func (p *page) owners(r *api.Resources) {
	for i := range r.Owners {
		o := &r.Owners[i]
		name := fmt.Sprintf("pid %d", o.PID)
		if o.Comm != "" {
			name += " (" + o.Comm + ")"
		}
		var counts []string
		for _, c := range o.Types {
			counts = append(counts, text.Number(c.Objects)+" "+c.Type)
		}
		words := strings.Join(counts, ", ")
		if m := o.Memlock; m != nil {
			words += fmt.Sprintf("; locked memory %s pinned, %s locked", bytes(m.Pinned), bytes(m.Locked))
			if m.Limit != nil {
				words += fmt.Sprintf(", each of %s (%s)", bytes(*m.Limit), percent(max(m.Pinned, m.Locked), *m.Limit))
			}
		}
		p.labelled(ownersLabel("Owners", i), p.of(strong, name), p.of(plain, ": "+words+inside(o.ContainerID, o.PodUID)))
	}
	var others []string
	for _, t := range r.Types {
		if t.Others > 0 {
			others = append(others, text.Number(t.Others)+" "+t.Type)
		}
	}
	if len(others) > 0 {
		p.labelled(ownersLabel("Owners", len(r.Owners)), p.of(plain, "others: "+strings.Join(others, ", ")))
	}
}

// growers writes whose objects grow, all owners together first.
func (p *page) growers(r *api.Resources) {
	lines := 0
	line := func(name, rest string, g *api.Growth) {
		s, words := plain, ": "+g.Words()
		if g.UntilLimit != nil {
			words += "; " + g.Until() + " until the limit"
		}
		if g.Steady {
			s = odd
		}
		p.labelled(ownersLabel("Growing", lines), p.of(strong, name), p.of(s, words+"; "+g.Way()), p.of(plain, rest))
		lines++
	}
	for i := range r.Types {
		if g := r.Types[i].Growth; g != nil {
			line(r.Types[i].Type+" of all", "", g)
		}
	}
	for i := range r.Growers {
		o := &r.Growers[i]
		name := fmt.Sprintf("%s of pid %d", o.Type, o.PID)
		if o.Comm != "" {
			name += " (" + o.Comm + ")"
		}
		line(name, inside(o.ContainerID, o.PodUID), &o.Growth)
	}
}

// left writes what was left of opened devices, and whose they were.
func (p *page) left(r *api.Resources) {
	for i := range r.Left {
		l := &r.Left[i]
		var counts []string
		for _, c := range l.Types {
			counts = append(counts, text.Number(c.Objects)+" "+c.Type)
		}
		words := ": " + strings.Join(counts, ", ") + ", since " + text.Moment(l.Since)
		if l.Until.Before(r.Taken) {
			words += " until " + text.Moment(l.Until)
		}
		if !l.LastSeen.IsZero() && l.Run == "" {
			words += fmt.Sprintf("; seen from %s to %s", text.Moment(l.FirstSeen), text.Moment(l.LastSeen))
		}
		p.labelled(ownersLabel("Left by", i), p.of(strong, l.Name()), p.of(plain, words+inside(l.ContainerID, l.PodUID)))
	}
}

// ownersLabel is the label of the n-th line of a list.
func ownersLabel(label string, n int) string {
	if n == 0 {
		return label
	}
	return ""
}

// inside says to which container and pod something belongs.
func inside(container, pod string) string {
	var s string
	if container != "" {
		s += "; container " + text.ShortID(container)
	}
	if pod != "" {
		s += "; pod " + pod
	}
	return s
}

// cgroups writes what the RDMA controller counts.
func (p *page) cgroups(all []api.Cgroup) {
	lines := 0
	for i := 0; i < len(all); lines++ {
		c := &all[i]
		var uses []string
		for ; i < len(all) && all[i].Cgroup == c.Cgroup; i++ {
			limit := "no limit"
			if l := all[i].Limit; l != nil {
				limit = fmt.Sprintf("limit %s (%s)", text.Number(*l), percent(all[i].Objects, *l))
			}
			uses = append(uses, fmt.Sprintf("%s %s, %s", text.Number(all[i].Objects), all[i].Resource, limit))
		}
		p.labelled(ownersLabel("Cgroups", lines), p.of(strong, c.Cgroup), p.of(plain, ": "+strings.Join(uses, "; ")+inside(c.ContainerID, c.PodUID)))
	}
}
