package web

import (
	"cmp"
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

// sizesRow has a cell for each attribute. Nil means that it was not requested.
type sizesRow struct {
	Object, Profile string
	Cells           []*state.Size
}

// sizesOf returns the sizes as tables, one for each kind of object, and a summary.
func sizesOf(sizes []state.Size) (tables []sizesView, summary string) {
	if len(sizes) == 0 {
		return nil, ""
	}
	less, other, clamped := 0, 0, 0
	for i := range sizes {
		s := &sizes[i]
		caption := cmp.Or(map[string]string{"cq": "Completion queues", "srq": "Shared receive queues", "qp": "Queue pairs"}[s.Kind()], "Other objects")
		at := slices.IndexFunc(tables, func(t sizesView) bool { return t.Caption == caption })
		if at < 0 {
			at, tables = len(tables), append(tables, sizesView{Caption: caption})
		}
		tables[at].add(s)
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
	for i := range tables {
		// The profiles stay in their order.
		slices.SortStableFunc(tables[i].Rows, func(a, b sizesRow) int { return strings.Compare(a.Object, b.Object) })
	}
	var odd []string
	for _, o := range []struct {
		n    int
		what string
	}{{less, " smaller than requested"}, {other, " reported differently when queried"}, {clamped, " reduced to a limit of the device before the request"}} {
		if o.n > 0 {
			odd = append(odd, text.Plural(o.n, "size")+o.what)
		}
	}
	if less+other == 0 {
		odd = append([]string{"Every size is at least as requested"}, odd...)
	}
	return tables, strings.Join(odd, "; ") + "."
}

func (t *sizesView) add(s *state.Size) {
	column := slices.Index(t.Attributes, s.Attribute)
	if column < 0 {
		column, t.Attributes = len(t.Attributes), append(t.Attributes, s.Attribute)
	}
	row := slices.IndexFunc(t.Rows, func(r sizesRow) bool { return r.Object == s.Object && r.Profile == s.Profile })
	if row < 0 {
		row, t.Rows = len(t.Rows), append(t.Rows, sizesRow{Object: s.Object, Profile: s.Profile})
	}
	r := &t.Rows[row]
	for len(r.Cells) <= column {
		r.Cells = append(r.Cells, nil)
	}
	r.Cells[column] = s
}
