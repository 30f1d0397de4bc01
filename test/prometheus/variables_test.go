//go:build prometheus

package prometheus_test

import (
	"fmt"
	"regexp"
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
