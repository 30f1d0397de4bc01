package terminal

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

func timeCompare(a, b time.Time) int { return a.Compare(b) }

type sizes struct {
	Profiles []string
	Rows     []sizesRow
	Notes    []string
}

type sizesRow struct {
	Objects, Attribute string
	Cells              []string
}

// sizesOf returns nil if no sizes were requested. Objects that got the same share a row.
func sizesOf(d *api.Device) *sizes {
	all := d.Sizes()
	if len(all) == 0 {
		return nil
	}
	v := new(sizes)
	for _, s := range all {
		if !slices.Contains(v.Profiles, s.Profile) {
			v.Profiles = append(v.Profiles, s.Profile)
		}
	}
	var rows []sizesRow
	for _, s := range all {
		i := slices.IndexFunc(rows, func(r sizesRow) bool { return r.Objects == s.Object && r.Attribute == s.Attribute })
		if i < 0 {
			i, rows = len(rows), append(rows, sizesRow{s.Object, s.Attribute, make([]string, len(v.Profiles))})
		}
		rows[i].Cells[slices.Index(v.Profiles, s.Profile)] = sizeText(s)
		name := fmt.Sprintf("%s %s %s", s.Object, s.Profile, s.Attribute)
		if s.Short() {
			v.Notes = append(v.Notes, fmt.Sprintf("Less than requested: %s, %s of %s.", name, text.Number(s.Actual), text.Number(s.Requested)))
		}
		if s.Clamp != nil {
			v.Notes = append(v.Notes, fmt.Sprintf("Requested less than configured: %s, %s, because %s is %s.",
				name, text.Number(s.Clamp.Configured), s.Clamp.Limit, text.Number(s.Requested)))
		}
		if s.Misreported() {
			v.Notes = append(v.Notes, fmt.Sprintf("Reported differently by a query: %s, %s.", name, text.Number(*s.Queried)))
		}
	}
	for _, r := range rows {
		i := slices.IndexFunc(v.Rows, func(m sizesRow) bool { return m.Attribute == r.Attribute && slices.Equal(m.Cells, r.Cells) })
		if i >= 0 {
			v.Rows[i].Objects += ", " + r.Objects
		} else {
			v.Rows = append(v.Rows, r)
		}
	}
	var inline, memory []string
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
	return v
}

func sizeText(s state.Size) string {
	if s.Actual == s.Requested {
		return text.Number(s.Requested)
	}
	return text.Number(s.Requested) + "→" + text.Number(s.Actual)
}

func given(d *api.Device) string {
	all := d.Sizes()
	if len(all) == 0 {
		return ""
	}
	var parts []string
	for _, s := range all {
		if s.Actual == s.Requested && s.Clamp == nil && !s.Misreported() {
			continue
		}
		words := fmt.Sprintf("%s %s %s", s.Kind(), strings.ReplaceAll(s.Attribute, "_", " "), sizeText(s)) // QP types usually get the same.
		if s.Clamp != nil {
			words += fmt.Sprintf(" of %s configured", text.Number(s.Clamp.Configured))
		}
		if s.Misreported() {
			words += fmt.Sprintf(" (queried %s)", text.Number(*s.Queried))
		}
		if !slices.Contains(parts, words) {
			parts = append(parts, words)
		}
	}
	if len(parts) == 0 {
		return "as requested"
	}
	return strings.Join(parts, "; ") + "; the rest as requested"
}

func methods(d *api.Device) []string {
	var all []string
	for _, p := range d.Detail() {
		for _, w := range p.Methods {
			words := w.By
			if words == "" {
				words = "no way found"
			}
			if w.InsteadOf != "" {
				words += ", not " + w.InsteadOf
			}
			all = append(all, fmt.Sprintf("%s port %d: %s", w.Path, w.Port, words))
		}
	}
	return all
}

// maxColumns limits the width of a distribution.
const maxColumns = 24

func (s Screen) distribution(bins []state.Bin) string {
	if len(bins) == 0 {
		return ""
	}
	at := func(to time.Duration) int { return int(math.Round(8 * math.Log10(float64(max(to, 1))))) } // The bins have 8 to a decade.
	first := at(bins[0].To)
	values := make([]float64, min(max(at(bins[len(bins)-1].To)-first+1, 1), maxColumns))
	for _, b := range bins {
		values[min(max(at(b.To)-first, 0), len(values)-1)] += float64(b.Samples)
	}
	return string(s.bars(values))
}

// bars returns bars of the height of values. None above zero is invisible.
func (s Screen) bars(values []float64) []rune {
	levels := []rune(" .:-=+*#@")
	if s.Unicode {
		levels = []rune(" ▁▂▃▄▅▆▇█")
	}
	highest := slices.Max(append([]float64{0}, values...))
	bars := make([]rune, len(values))
	for i, v := range values {
		level := 0
		if v > 0 {
			level = min(max(int(math.Ceil(v/highest*float64(len(levels)-1))), 1), len(levels)-1)
		}
		bars[i] = levels[level]
	}
	return bars
}

type vectors struct {
	Summary string
	Rows    []safe
	// Odd describes the vectors that are slow or had errors.
	Odd []string
}

func (s Screen) vectors(d *api.Device) *vectors {
	all := d.Vectors()
	if len(all) == 0 {
		return nil
	}
	v := &vectors{Summary: fmt.Sprintf("%d measured", len(all))}
	if d.Info != nil && d.Info.CompletionVectors > len(all) {
		v.Summary += fmt.Sprintf(" of %d", d.Info.CompletionVectors)
	}
	slow := state.SlowVectors(all)
	values := make([]float64, len(all))
	for i := range all {
		values[i] = float64(all[i].P50)
	}
	bars := s.bars(values)
	for chunk := range slices.Chunk(all, s.width()-12) {
		row := s.in(faint, fmt.Sprintf("  %7d ", chunk[0].Vector)) + safe(string(hang))
		marks := ""
		for i := range chunk {
			one := &chunk[i]
			var is []string
			if slices.Contains(slow, one.Vector) {
				is = append(is, "slow")
			}
			if n := one.Errors(); n > 0 {
				is = append(is, fmt.Sprintf("%d wrong", n))
			}
			if len(is) == 0 {
				row += s.in(good, string(bars[i]))
				marks += " "
				continue
			}
			row += s.in(bad, string(bars[i]))
			marks += "^"
			v.Odd = append(v.Odd, fmt.Sprintf("vector %d: %s, p50 %s, p99 %s, by %s on port %d",
				one.Vector, strings.Join(is, ", "), text.Duration(one.P50), text.Duration(one.P99), one.Path, one.Port))
		}
		bars = bars[len(chunk):]
		v.Rows = append(v.Rows, row)
		if marks = strings.TrimRight(marks, " "); marks != "" {
			v.Rows = append(v.Rows, safe(strings.Repeat(" ", 10)+string(hang))+s.in(bad, marks))
		}
	}
	return v
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

func notes(u health.Usage) string {
	var words []string
	if u.Leaked > 0 {
		words = append(words, text.Number(u.Leaked)+" leaked")
	}
	if u.Orphaned != nil && *u.Orphaned > 0 {
		words = append(words, text.Number(*u.Orphaned)+" orphaned")
	}
	if u.Incomplete != nil {
		words = append(words, string(u.Incomplete.Reason))
	}
	return strings.Join(words, ", ")
}

func objectNotes(d *api.Device) []string {
	var all, pairs, exhausted []string
	if i := d.Resources.Inventory; i != nil {
		for _, q := range i.QueuePairs {
			pairs = append(pairs, fmt.Sprintf("%s %s %s", text.Number(q.Objects), q.Type, q.State))
		}
	}
	for _, u := range d.Usage() {
		if e := u.Exhausted; e != nil {
			exhausted = append(exhausted, fmt.Sprintf("%s %s (%s, %s)", text.Number(e.Objects), u.Type, e.Errno, text.Moment(e.At)))
		}
	}
	if len(pairs) > 0 {
		all = append(all, "Queue pairs: "+strings.Join(pairs, ", ")+".")
	}
	if len(exhausted) > 0 {
		all = append(all, "Exhausted at "+strings.Join(exhausted, ", ")+".")
	}
	return all
}

func blind(r *state.Resources) string {
	switch {
	case r.Inventory == nil:
		return "; the objects on the device are not known"
	case !r.Inventory.PIDsVisible:
		return "; the processes of the host cannot be seen: owners and orphans are unknown"
	default:
		return ""
	}
}

func process(pid int, comm string) string {
	if comm == "" {
		return fmt.Sprintf("pid %d", pid)
	}
	return fmt.Sprintf("pid %d (%s)", pid, comm)
}

func inside(container, pod string) string {
	var words string
	if container != "" {
		words += "; container " + text.ShortID(container)
	}
	if pod != "" {
		words += "; pod " + pod
	}
	return words
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
		words += "; first " + process(owners[0].PID, owners[0].Comm)
		if more := len(owners) - 1; more > 0 {
			words += fmt.Sprintf(" and %d more", more)
		}
	}
	return words
}

func owners(d *api.Device) []string {
	i := d.Resources.Inventory
	if i == nil {
		return nil
	}
	var all []string
	for _, o := range i.LargestOwners() {
		line := process(o.PID, o.Comm) + ": " + api.Counts(o.Objects)
		if m := o.Memlock; m != nil {
			line += fmt.Sprintf("; locked memory %s pinned, %s locked", text.Bytes(m.Pinned), text.Bytes(m.Locked))
			if m.Limit >= 0 {
				line += fmt.Sprintf(", each of %s (%s)", text.Bytes(m.Limit), text.Percent(max(m.Pinned, m.Locked), m.Limit))
			}
		}
		all = append(all, line+inside(o.ContainerID, o.PodUID))
	}
	if len(i.Others) > 0 {
		all = append(all, "others: "+api.Counts(i.Others))
	}
	return all
}

func growing(d *api.Device) []string {
	var all []string
	line := func(who string, t health.Trend, rest string) {
		words := who + ": " + api.Growth(t)
		if t.Limit > 0 {
			words += "; " + text.Until(t.TimeToLimit) + " until the limit"
		}
		all = append(all, words+"; "+api.Steadiness(t)+rest)
	}
	if d.Growth == nil {
		return nil
	}
	for _, t := range d.Growth.All {
		line(t.Type+" of all", t, "")
	}
	for _, o := range d.Growth.Fastest() {
		line(o.Type+" of "+process(o.PID, o.Comm), o.Trend, inside(o.ContainerID, o.PodUID))
	}
	return all
}

func leftover(d *api.Device) []string {
	var all []string
	for i := range d.Leftover {
		w := &d.Leftover[i]
		line := fmt.Sprintf("%s: %s, since %s", w.Owner(), api.Counts(w.Objects), text.Moment(w.LeftFirst))
		if w.LeftLast.Before(d.Resources.Taken) {
			line += " until " + text.Moment(w.LeftLast)
		}
		if !w.Last.IsZero() && w.Run == "" {
			line += fmt.Sprintf("; seen from %s to %s", text.Moment(w.First), text.Moment(w.Last))
		}
		all = append(all, line+inside(w.ContainerID, w.PodUID))
	}
	return all
}

func cgroups(d *api.Device) []string {
	if d.Resources.Inventory == nil {
		return nil
	}
	var all []string
	for _, c := range d.Resources.Inventory.Cgroups {
		limit := "no limit"
		if c.Limit >= 0 {
			limit = fmt.Sprintf("limit %s (%s)", text.Number(c.Limit), text.Percent(c.Current, c.Limit))
		}
		all = append(all, fmt.Sprintf("%s: %s %s, %s%s", c.Cgroup, text.Number(c.Current), c.Resource, limit, inside(c.ContainerID, c.PodUID)))
	}
	return all
}
