package web

import (
	"html/template"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

type sizesView struct {
	Caption    string
	Attributes []string
	Rows       []sizesRow
}

type sizesRow struct {
	Object, Profile string
	Cells           []template.HTML
}

// sizesOf returns the sizes as tables, one for each kind of object, and a summary.
func sizesOf(sizes []state.Size) (tables []sizesView, summary string) {
	less, other, clamped := 0, 0, 0
	for i := range sizes {
		s := &sizes[i]
		t, column := tableFor(&tables, s)
		row := len(t.Rows) - 1
		if row < 0 || t.Rows[row].Object != s.Object || t.Rows[row].Profile != s.Profile || len(t.Rows[row].Cells) > column {
			t.Rows = append(t.Rows, sizesRow{Object: s.Object, Profile: s.Profile})
			row++
		}
		for len(t.Rows[row].Cells) < column {
			t.Rows[row].Cells = append(t.Rows[row].Cells, "")
		}
		t.Rows[row].Cells = append(t.Rows[row].Cells, sizeCell(s))
		if s.Short() {
			less++
		}
		if s.Misreported() {
			other++
		}
		if s.Clamp != nil {
			clamped++
		}
	}
	if len(sizes) == 0 {
		return nil, ""
	}
	for i := range tables {
		// The profiles stay in their order.
		slices.SortStableFunc(tables[i].Rows, func(a, b sizesRow) int { return strings.Compare(a.Object, b.Object) })
	}
	var odd []string
	if less > 0 {
		odd = append(odd, text.Plural(less, "size")+" smaller than requested")
	}
	if other > 0 {
		odd = append(odd, text.Plural(other, "size")+" reported differently when queried")
	}
	if clamped > 0 {
		odd = append(odd, text.Plural(clamped, "size")+" reduced to a limit of the device before the request")
	}
	if less+other == 0 {
		odd = append([]string{"every size is at least as requested"}, odd...)
	}
	words := strings.Join(odd, "; ")
	return tables, strings.ToUpper(words[:1]) + words[1:] + "."
}

func tableFor(tables *[]sizesView, s *state.Size) (t *sizesView, column int) {
	caption := map[string]string{"cq": "Completion queues", "srq": "Shared receive queues", "qp": "Queue pairs"}[s.Kind()]
	if caption == "" {
		caption = "Other objects"
	}
	i := slices.IndexFunc(*tables, func(t sizesView) bool { return t.Caption == caption })
	if i < 0 {
		i = len(*tables)
		*tables = append(*tables, sizesView{Caption: caption})
	}
	t = &(*tables)[i]
	column = slices.Index(t.Attributes, s.Attribute)
	if column < 0 {
		column = len(t.Attributes)
		t.Attributes = append(t.Attributes, s.Attribute)
	}
	return t, column
}

func sizeCell(s *state.Size) template.HTML {
	var b strings.Builder
	add := func(class, text string) {
		if class != "" {
			text = `<span class="` + class + `">` + text + `</span>`
		}
		b.WriteString(text)
	}
	add("", text.Number(s.Requested)+` <span class="arrow"><span aria-hidden="true">→</span><span class="unseen">requested, actual</span></span> `)
	switch {
	case s.Short() && s.Known:
		add("more", `<b>`+text.Number(s.Actual)+`</b> less, as the driver is known to`)
	case s.Short():
		add("text critical", `<b>`+text.Number(s.Actual)+`</b> <span aria-hidden="true">✕</span> less`)
	case s.Actual > s.Requested:
		add("more", text.Number(s.Actual))
	default:
		add("", text.Number(s.Actual))
	}
	switch {
	case !s.Misreported():
	case s.Known:
		add("note", `queried: `+text.Number(*s.Queried)+`, as the driver is known to`)
	default:
		add("note text warning", `<span aria-hidden="true">▲</span> queried: <b>`+text.Number(*s.Queried)+`</b>`)
	}
	if s.Clamp != nil {
		add("note", "of "+text.Number(s.Clamp.Configured)+" configured ("+template.HTMLEscapeString(s.Clamp.Limit)+")")
	}
	return template.HTML(b.String())
}
