//go:build prometheus

package prometheus_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A scope has the values of variables by name, Grafana's own ones among them.
type scope map[string]value

// value is what a variable stands for.
type value struct {
	values []string
	// many tells that the variable can have several values, so that they are made
	// ready for a regular expression.
	many bool
	// ready tells that the value is put in as it is.
	ready bool
}

// with returns a copy of the scope with another variable.
func (s scope) with(name string, v value) scope {
	c := scope{name: v}
	for k, v := range s {
		if k != name {
			c[k] = v
		}
	}
	return c
}

// reference finds variables in the ways in which Grafana takes them: $name,
// ${name:format}, and [[name:format]].
func reference() *regexp.Regexp {
	return regexp.MustCompile(`\$(\w+)|\[\[(\w+?)(?::(\w+))?\]\]|\$\{(\w+)(?:\.([^:}]+))?(?::([^}]+))?\}`)
}

// interpolate puts in the variables of a query as Grafana does for Prometheus. One
// that does not exist is an error; Grafana would leave it to Prometheus to refuse.
func (s scope) interpolate(text string) (string, error) {
	var failed error
	out := reference().ReplaceAllStringFunc(text, func(found string) string {
		m := reference().FindStringSubmatch(found)
		name, format := m[1]+m[2]+m[4], m[3]+m[6]
		if _, err := strconv.Atoi(name); err == nil {
			return found // $1 is a group of label_replace
		}
		v, ok := s[name]
		if !ok {
			failed = fmt.Errorf("no variable is called %s", name)
			return found
		}
		in, err := v.format(format)
		if err != nil {
			failed = fmt.Errorf("variable %s: %w", name, err)
		}
		return in
	})
	return out, failed
}

func (v value) format(format string) (string, error) {
	switch {
	case v.ready, format == "raw":
		return strings.Join(v.values, ","), nil
	case format == "":
		return v.forPrometheus(), nil
	}
	return "", fmt.Errorf("nobody taught the test the format %q", format)
}

// forPrometheus is the format of the data source: alternatives of a regular
// expression, within a string of PromQL.
func (v value) forPrometheus() string {
	if !v.many {
		return strings.NewReplacer(`\`, `\\`, `'`, `\\'`).Replace(strings.Join(v.values, ","))
	}
	special := regexp.MustCompile(`[$^*{}\[\]'+?.()|]`)
	var all []string
	for _, one := range v.values {
		all = append(all, special.ReplaceAllString(strings.ReplaceAll(one, `\`, `\\\\`), `\\$0`))
	}
	if len(all) == 1 {
		return all[0]
	}
	return "(" + strings.Join(all, "|") + ")"
}

func TestInterpolate(t *testing.T) {
	s := scope{
		"job":             {values: []string{"it's", `a\b`}, many: true},
		"instance":        {values: []string{"10.0.0.1:10879"}, many: true},
		"device":          {values: []string{"mlx5_0"}},
		"all":             {values: []string{".+"}, many: true, ready: true},
		"__rate_interval": {values: []string{"20s"}},
	}
	for text, want := range map[string]string{
		`a{job=~"$job"}`:                             `a{job=~"(it\\'s|a\\\\b)"}`,
		`a{instance=~"$instance"}`:                   `a{instance=~"10\\.0\\.0\\.1:10879"}`,
		`a{instance=~"${instance}",b="[[device]]"`:   `a{instance=~"10\\.0\\.0\\.1:10879",b="mlx5_0"`,
		`a{instance="${instance:raw}"}`:              `a{instance="10.0.0.1:10879"}`,
		`a{device="[[device:raw]]"}`:                 `a{device="mlx5_0"}`,
		`a{b=~"$all"}`:                               `a{b=~".+"}`,
		`rate(a[$__rate_interval])`:                  `rate(a[20s])`,
		`rate(a[${__rate_interval}])`:                `rate(a[20s])`,
		`label_replace(a, "b", "$1", "c", "x(.*)$")`: `label_replace(a, "b", "$1", "c", "x(.*)$")`,
		`a{b=~"[[:alpha:]]$"}`:                       `a{b=~"[[:alpha:]]$"}`,
	} {
		if got, err := s.interpolate(text); err != nil || got != want {
			t.Errorf("%s became\n%s, %v, want\n%s", text, got, err, want)
		}
	}
	for _, text := range []string{`a{b="$missing"}`, `a{b="${missing}"}`, `a{b="[[missing]]"}`, `a{b="${device:strange}"}`} {
		if got, err := s.interpolate(text); err == nil {
			t.Errorf("%s became %s, want an error", text, got)
		}
	}
}

// parseLabelValues parses the query of a variable: label_values(LABEL), or
// label_values(SELECTOR, LABEL).
func parseLabelValues(text string) (selector, label string, err error) {
	m := regexp.MustCompile(`^label_values\((?:(?s:(.+)),)?\s*([\w:]+)\s*\)$`).FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", "", fmt.Errorf("the query of a variable is %q, want label_values of a label", text)
	}
	return strings.TrimSpace(m[1]), m[2], nil
}

func TestParseLabelValues(t *testing.T) {
	for text, want := range map[string][2]string{
		`label_values(job)`:                                       {"", "job"},
		`label_values(rdma_device_info, job)`:                     {"rdma_device_info", "job"},
		`label_values(up{job=~"$job",a="b, c"},instance)`:         {`up{job=~"$job",a="b, c"}`, "instance"},
		"label_values(rdma_device_info{instance=\"x\"}, device) ": {`rdma_device_info{instance="x"}`, "device"},
	} {
		if selector, label, err := parseLabelValues(text); err != nil || [2]string{selector, label} != want {
			t.Errorf("%s: %q, %q, %v, want %q", text, selector, label, err, want)
		}
	}
	for _, text := range []string{"", "rdma_device_info", "label_values()", "label_names()", "query_result(up)"} {
		if selector, label, err := parseLabelValues(text); err == nil {
			t.Errorf("%q: %q, %q, want an error", text, selector, label)
		}
	}
}

// A link is where one in a dashboard leads to.
type link struct {
	// dashboard is the UID of a dashboard, empty for a place that is none.
	dashboard string
	// sets are the variables of that dashboard that the link sets.
	sets []string
	// variables, labels and fields are what the link is made of: variables of the
	// dashboard, labels of the series, fields of the row.
	variables, labels, fields []string
}

func parseLink(target string) (link, error) {
	var l link
	var failed error
	filled := regexp.MustCompile(`\$\{([^}]+)\}|\$(\w+)`).ReplaceAllStringFunc(target, func(found string) string {
		name, _, _ := strings.Cut(strings.Trim(found, "${}"), ":")
		switch label, isLabel := member(name, "__field.labels"); {
		case isLabel:
			l.labels = append(l.labels, label)
		case strings.HasPrefix(name, "__data.fields"):
			field, ok := member(name, "__data.fields")
			if !ok {
				failed = fmt.Errorf("%s names no field", found)
			}
			l.fields = append(l.fields, field)
		case strings.HasPrefix(name, "__"):
			known := []string{
				"__url_time_range", "__from", "__to", "__all_variables", "__value.raw", "__value.text", "__value.numeric",
				"__value.time", "__series.name", "__field.name", "__dashboard.uid",
			}
			failed = fmt.Errorf("%s is nothing that Grafana knows", found)
			for _, k := range known {
				if name == k {
					failed = nil
				}
			}
		default:
			l.variables = append(l.variables, name)
		}
		return "x"
	})
	if failed != nil {
		return link{}, failed
	}
	u, err := url.Parse(filled)
	if err != nil {
		return link{}, err
	}
	if rest, ok := strings.CutPrefix(u.Path, "/d/"); ok {
		l.dashboard, _, _ = strings.Cut(rest, "/")
	}
	for name := range u.Query() {
		if set, ok := strings.CutPrefix(name, "var-"); ok {
			l.sets = append(l.sets, set)
		}
	}
	slices.Sort(l.sets)
	return l, nil
}

// member returns which member of an object a name is, as in object.member or
// object["member"].
func member(name, object string) (string, bool) {
	rest, ok := strings.CutPrefix(name, object)
	if !ok || rest == "" {
		return "", false
	}
	if found, ok := strings.CutPrefix(rest, "."); ok {
		return found, found != ""
	}
	found := strings.TrimSuffix(strings.TrimPrefix(rest, "["), "]")
	if unquoted := strings.Trim(found, `"'`); unquoted != found {
		return unquoted, true
	}
	return "", false
}

func TestParseLink(t *testing.T) {
	for target, want := range map[string]string{
		`/d/rdma-device/rdma-device?var-device=${__field.labels.device}&${__url_time_range}`: `{rdma-device [device] [] [device] []}`,
		`/d/x?var-instance=${__data.fields["the instance"]}&var-job=${job:queryparam}`:       `{x [instance job] [job] [] [the instance]}`,
		`/d/x?${job:queryparam}&${__all_variables}`:                                          `{x [] [job] [] []}`,
		`https://example.org/${__field.labels["a b"]}`:                                       `{ [] [] [a b] []}`,
	} {
		got, err := parseLink(target)
		if fmt.Sprint(got) != want || err != nil {
			t.Errorf("%s: %v, %v, want %s", target, got, err, want)
		}
	}
	for _, target := range []string{`/d/x?a=${__data.fields[0]}`, `/d/x?a=${__fields.labels.device}`} {
		if got, err := parseLink(target); err == nil {
			t.Errorf("%s: %v, want an error", target, got)
		}
	}
}
