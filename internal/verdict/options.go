package verdict

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/health"
)

// Options say what makes a verdict bad.
type Options struct {
	// For is how long a finding must exist to count.
	For time.Duration
	// ClearAfter is how long a verdict stays bad after the last finding that counted.
	ClearAfter time.Duration
	// FailOn is the least severe finding that counts.
	FailOn health.Severity
	// Accept are kinds that do not count, or with a slash subjects of kinds, such as port_down/port 1.
	Accept []string
	// Devices and ActivePorts are expected at least. Negative means that no number is expected.
	Devices, ActivePorts int
}

// Default returns the default options.
func Default() Options {
	return Options{For: 2 * time.Minute, ClearAfter: 5 * time.Minute, FailOn: health.SeverityCritical, Devices: -1, ActivePorts: -1}
}

// Parse returns the options of a query. The error names what is wrong with a parameter.
func Parse(query url.Values) (Options, error) {
	o := Default()
	for key, values := range query {
		for _, value := range values {
			if hint := o.set(key, value); hint != "" {
				return o, fmt.Errorf("%s is %q: %s", key, value, hint)
			}
		}
	}
	return o, nil
}

// set returns what to do if the value is wrong.
func (o *Options) set(key, value string) (hint string) {
	d, notTime := time.ParseDuration(value)
	n, notNumber := strconv.ParseUint(value, 10, 16)
	kind, _, _ := strings.Cut(value, "/")
	ok := false
	switch key {
	case "for":
		o.For, ok, hint = d, notTime == nil && d >= 0 && d <= 24*time.Hour, "use a duration from 0s to 24h"
	case "clear_after": // The exporter forgets then what is over.
		o.ClearAfter, ok, hint = d, notTime == nil && d >= 0 && d <= 10*time.Minute, "use a duration from 0s to 10m"
	case "expect_devices":
		o.Devices, ok, hint = int(n), notNumber == nil, "use a whole number from 0 to 65535"
	case "expect_active_ports":
		o.ActivePorts, ok, hint = int(n), notNumber == nil, "use a whole number from 0 to 65535"
	case "fail_on":
		o.FailOn, ok, hint = health.Severity(value), value == "warning" || value == "critical", "use warning or critical"
	case "accept":
		o.Accept, hint = append(o.Accept, value), "there is no such finding; docs/reference/findings.md lists them"
		ok = slices.Contains(health.AcceptableKinds(), health.Kind(kind))
	default:
		hint = "there is no such parameter"
	}
	if ok {
		return ""
	}
	return hint
}

func (o *Options) counts(f *health.Finding) bool {
	severe := f.Severity == health.SeverityCritical || o.FailOn == health.SeverityWarning
	return severe && f.Counts() && !slices.ContainsFunc(o.Accept, func(a string) bool {
		kind, subject, one := strings.Cut(a, "/")
		return kind == string(f.Kind) && (!one || subject == f.Subject)
	})
}
