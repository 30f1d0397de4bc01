//go:build prometheus

package prometheus_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"testing"
)

// checkNames makes sure that the labels that the names of series, and the texts of
// annotations, are made of exist. What is listed as empty has none.
func (p *proof) checkNames(t testing.TB) {
	t.Helper()
	for _, e := range p.expressions {
		for _, legend := range e.legends {
			for _, label := range legendLabels(legend) {
				if e.labels != nil && !e.labels[label] {
					t.Errorf("%s shows {{%s}}, but its series have only %q", e.id(), label, slices.Sorted(maps.Keys(e.labels)))
				}
			}
		}
	}
}

// legendLabels returns the labels that a legend shows.
func legendLabels(legend string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`\{\{\s*(.+?)\s*\}\}`).FindAllStringSubmatch(legend, -1) {
		all = append(all, m[1])
	}
	return all
}

func TestLegendLabels(t *testing.T) {
	for legend, want := range map[string][]string{
		"":                          nil,
		"__auto":                    nil,
		"{{device}}":                {"device"},
		"p99 {{ device }}/{{port}}": {"device", "port"},
	} {
		if got := legendLabels(legend); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", legend, got, want)
		}
	}
}

// checkLinks makes sure that links lead to dashboards that there are, set variables
// that those have, and are made of what there is.
func (p *proof) checkLinks(t testing.TB) {
	t.Helper()
	variables := make(map[string][]string)
	for _, d := range p.dashboards {
		for _, v := range d.Templating.List {
			variables[d.UID] = append(variables[d.UID], v.Name)
		}
	}
	check := func(where string, d *dashboard, l linkTo) link {
		if l.URL == "" {
			return link{} // a list of dashboards
		}
		parsed, err := parseLink(l.URL)
		if err != nil {
			t.Errorf("%s: link %s: %v", where, l.URL, err)
			return link{}
		}
		known, ok := variables[parsed.dashboard]
		if parsed.dashboard != "" && !ok {
			t.Errorf("%s: link %s: no dashboard has the UID %s", where, l.URL, parsed.dashboard)
		}
		for _, name := range parsed.sets {
			if ok && !slices.Contains(known, name) {
				t.Errorf("%s: link %s: that dashboard has no variable %s", where, l.URL, name)
			}
		}
		for _, name := range parsed.variables {
			if !slices.Contains(variables[d.UID], name) {
				t.Errorf("%s: link %s: there is no variable %s", where, l.URL, name)
			}
		}
		return parsed
	}
	for _, d := range p.dashboards {
		for _, l := range d.Links {
			check(d.file, d, l)
		}
		for _, panel := range d.panels() {
			where := d.file + "/" + panel.name()
			labels := p.labels(panel.panel)
			var fields columns
			if labels != nil && panel.Type == "table" {
				fields = panel.columns(t, where, labels)
			}
			for _, l := range panel.links(t, where) {
				parsed := check(where, d, l)
				for _, name := range parsed.labels {
					if labels != nil && !labels[name] {
						t.Errorf("%s: link %s: no series has the label %s, only %q", where, l.URL, name, slices.Sorted(maps.Keys(labels)))
					}
				}
				for _, name := range parsed.fields {
					if labels != nil && !fields.has(name) {
						t.Errorf("%s: link %s: no row has the field %s, only %q", where, l.URL, name, slices.Sorted(maps.Keys(fields)))
					}
				}
			}
		}
	}
}

// links returns all links of the panel.
func (p *panel) links(t testing.TB, where string) []linkTo {
	t.Helper()
	all := slices.Concat(p.Links, p.FieldConfig.Defaults.Links)
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			if property.ID != "links" {
				continue
			}
			var some []linkTo
			if err := json.Unmarshal(property.Value, &some); err != nil {
				t.Errorf("%s: %v", where, err)
			}
			all = append(all, some...)
		}
	}
	return all
}

// columns are what the columns of a table are called, by the names that they have
// first.
type columns map[string]string

// has reports whether a column has a name, first or in the end.
func (c columns) has(name string) bool {
	_, ok := c[name]
	return ok || slices.Contains(slices.Collect(maps.Values(c)), name)
}

// labels returns the labels that series of a panel have, nil if they are not known
// because one of its expressions is listed as empty.
func (p *proof) labels(of *panel) map[string]bool {
	labels := make(map[string]bool)
	for _, e := range p.expressions {
		switch {
		case e.panel.panel != of:
		case e.labels == nil:
			return nil
		default:
			maps.Copy(labels, e.labels)
		}
	}
	return labels
}

// organise is the transformation that renames and leaves out columns.
const organise = "organize" //nolint:misspell // Grafana names it so

// columns returns the columns of a table that has the labels, as Grafana makes them,
// and makes sure that those exist that its transformations name.
func (p *panel) columns(t testing.TB, where string, labels map[string]bool) columns {
	t.Helper()
	all := columns{"Time": "Time"}
	for label := range labels {
		all[label] = label
	}
	for _, target := range p.Targets {
		value := "Value"
		if len(p.Targets) > 1 {
			value += " #" + target.RefID
		}
		all[value] = value
	}
	check := func(what, name string) {
		if !all.has(name) {
			t.Errorf("%s %s the column %s, and has only %q", where, what, name, slices.Sorted(maps.Keys(all)))
		}
	}
	for _, transformation := range p.Transformations {
		var options struct {
			Include struct {
				Names []string `json:"names"`
			} `json:"include"`
			RenameByName  map[string]string `json:"renameByName"`
			ExcludeByName map[string]bool   `json:"excludeByName"`
			Filters       []struct {
				FieldName string `json:"fieldName"`
			} `json:"filters"`
		}
		if err := json.Unmarshal(transformation.Options, &options); err != nil {
			t.Errorf("%s: transformation %s: %v", where, transformation.ID, err)
		}
		switch transformation.ID {
		case "merge":
		case "filterByValue":
			for _, filter := range options.Filters {
				check("filters by", filter.FieldName)
			}
		case "filterFieldsByName":
			for _, name := range options.Include.Names {
				check("keeps", name)
			}
			maps.DeleteFunc(all, func(name, _ string) bool { return !slices.Contains(options.Include.Names, name) })
		case organise:
			for old, renamed := range options.RenameByName {
				check("renames", old)
				all[old] = renamed
			}
			maps.DeleteFunc(all, func(name, _ string) bool { return options.ExcludeByName[name] })
		default:
			t.Errorf("%s: nobody taught the test the transformation %s", where, transformation.ID)
		}
	}
	for _, o := range p.FieldConfig.Overrides {
		if name, ok := o.Matcher.Options.(string); ok && o.Matcher.ID == "byName" {
			check("has settings for", name)
		}
	}
	return all
}
