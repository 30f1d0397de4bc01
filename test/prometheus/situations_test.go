//go:build prometheus

package prometheus_test

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// grafana evaluates the expressions of a dashboard as Grafana does.
type grafana struct {
	api *api
	now time.Time
}

// situations returns what the variables of a dashboard can be: each choice that the
// reader has where only one value can be chosen, and all where several can.
func (g grafana) situations(d *dashboard) ([]scope, error) {
	all := []scope{{}}
	for _, v := range d.Templating.List {
		var next []scope
		for _, s := range all {
			options, err := g.options(v, s)
			if err != nil {
				return nil, fmt.Errorf("%s: variable %s: %w", d.file, v.Name, err)
			}
			switch many := v.Multi || v.IncludeAll; {
			case many && v.AllValue != "":
				next = append(next, s.with(v.Name, value{values: []string{v.AllValue}, many: true, ready: true}))
			case many:
				next = append(next, s.with(v.Name, value{values: options, many: true}))
			case len(options) == 0:
				next = append(next, s.with(v.Name, value{}))
			default:
				for _, option := range options {
					next = append(next, s.with(v.Name, value{values: []string{option}}))
				}
			}
		}
		all = next
	}
	return all, nil
}

// options returns the values of a variable, given those before it.
func (g grafana) options(v variable, s scope) ([]string, error) {
	if v.Regex != "" {
		return nil, errors.New("nobody taught the test to filter by a regular expression")
	}
	text, _ := v.Query.(string)
	if object, ok := v.Query.(map[string]any); ok {
		text, _ = object["query"].(string)
	}
	switch v.Type {
	case "datasource":
		if text != "prometheus" {
			return nil, fmt.Errorf("offers data sources of type %q, want prometheus", text)
		}
		return []string{"the test's"}, nil
	case "custom":
		return strings.Split(text, ","), nil
	case "query":
		selector, label, err := parseLabelValues(text)
		if err != nil {
			return nil, err
		}
		if selector, err = s.interpolate(selector); err != nil {
			return nil, err
		}
		return g.api.labelValues(label, selector, shownUntil(g.now, 0, g.api.scrapes))
	}
	return nil, fmt.Errorf("nobody taught the test the type %q", v.Type)
}

// single returns the scope as it is when of each variable only the first value is
// chosen.
func (s scope) single() scope {
	one := make(scope)
	for name, v := range s {
		if len(v.values) > 1 {
			v.values = v.values[:1]
		}
		one[name] = v
	}
	return one
}

// evaluate evaluates an expression of a dashboard; those of panels just once, not over
// time, if that will do.
func (g grafana) evaluate(e *expression, s scope, once bool) ([]series, error) {
	if e.kind == kindVariable {
		// A value, or none, is all that there is to it.
		var found []series
		for _, v := range s[e.variable].values {
			found = append(found, series{labels: map[string]string{e.variable: v}, samples: []float64{1}})
		}
		return found, nil
	}
	r, s, err := g.times(e, s)
	if err != nil {
		return nil, err
	}
	text, err := s.interpolate(e.text)
	if err != nil {
		return nil, err
	}
	once = once && e.kind == kindPanel
	var found []series
	if e.instant || once {
		if found, err = g.api.query(text, r.to); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, text)
		}
	}
	if e.ranged && !once {
		over, err := g.api.queryRange(text, r.aligned())
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, text)
		}
		found = append(found, over...)
	}
	return found, nil
}

// times returns the range of time of an expression, and the scope with the variables
// that depend on it.
func (g grafana) times(e *expression, s scope) (timeRange, scope, error) {
	points, asked := 0.0, cmp.Or(e.step, "60s")
	if e.kind != kindAnnotation {
		points, asked = e.panel.MaxDataPoints, strings.TrimPrefix(e.panel.Interval, ">")
	}
	least := g.api.scrapes
	if asked != "" {
		d, err := time.ParseDuration(asked)
		if err != nil {
			return timeRange{}, nil, err
		}
		// Mostly minutes, of which the test has not many. As scrapes are closer than
		// elsewhere, so are these.
		least = max(least, min(d, 5*g.api.scrapes))
	}
	r := shownUntil(g.now, points, least)
	if e.kind == kindAnnotation {
		r.step = least
	}
	rate := max(r.step+g.api.scrapes, 4*g.api.scrapes)
	span := r.to.Sub(r.from)
	for name, text := range map[string]string{
		"__interval": seconds(r.step), "__interval_ms": strconv.FormatInt(r.step.Milliseconds(), 10),
		"__rate_interval": seconds(rate),
		"__range":         seconds(span), "__range_s": strconv.Itoa(int(span.Seconds())), "__range_ms": strconv.FormatInt(span.Milliseconds(), 10),
		"__from": strconv.FormatInt(r.from.UnixMilli(), 10), "__to": strconv.FormatInt(r.to.UnixMilli(), 10),
	} {
		s = s.with(name, value{values: []string{text}})
	}
	return r, s, nil
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) + "s" }
