package verdict

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// Options say what makes a verdict bad.
type Options struct {
	// For is how long a finding must stand to count.
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

const (
	// maxFor limits Options.For.
	maxFor = 24 * time.Hour
	// maxClearAfter is how long the exporter remembers a finding that is over.
	maxClearAfter = 10 * time.Minute
	maxExpected   = 1 << 16
)

// Default returns the default options.
func Default() Options {
	return Options{For: 2 * time.Minute, ClearAfter: 5 * time.Minute, FailOn: health.SeverityCritical, Devices: -1, ActivePorts: -1}
}

// Parse returns the options of a query: for, clear_after, fail_on, accept, expect_devices and expect_active_ports. An
// error begins with the key that is wrong, and is one line.
func Parse(query url.Values) (Options, error) {
	o := Default()
	keys := map[string]func(string) error{
		"for":         span(&o.For, maxFor),
		"clear_after": span(&o.ClearAfter, maxClearAfter),
		"fail_on": func(s string) error {
			if o.FailOn = health.Severity(s); o.FailOn != health.SeverityWarning && o.FailOn != health.SeverityCritical {
				return fmt.Errorf("use %s or %s", health.SeverityWarning, health.SeverityCritical)
			}
			return nil
		},
		"accept": func(s string) error {
			kind, _, _ := strings.Cut(s, "/")
			if o.Accept = append(o.Accept, s); !slices.Contains(health.AcceptableKinds(), health.Kind(kind)) {
				return fmt.Errorf("there is no such finding; docs/reference/findings.md lists them")
			}
			return nil
		},
		"expect_devices":      number(&o.Devices),
		"expect_active_ports": number(&o.ActivePorts),
	}
	for key, values := range query {
		set := keys[key]
		if set == nil {
			return o, fmt.Errorf("%q is no parameter of a verdict", key)
		}
		for _, s := range values {
			if err := set(s); err != nil {
				return o, fmt.Errorf("%s is %q: %w", key, s, err)
			}
		}
	}
	return o, nil
}

func span(to *time.Duration, most time.Duration) func(string) error {
	return func(s string) error {
		d, err := time.ParseDuration(s)
		if *to = d; err != nil || d < 0 || d > most {
			return fmt.Errorf("use a duration from 0s to %s", most)
		}
		return nil
	}
}

func number(to *int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if *to = n; err != nil || n < 0 || n > maxExpected {
			return fmt.Errorf("use a whole number from 0 to %d", maxExpected)
		}
		return nil
	}
}

// accepts reports whether a finding does not count although it is severe enough.
func (o *Options) accepts(f *health.Finding) bool {
	return f.Accepted != nil || f.Kind == health.FindingNetnsBlind ||
		slices.Contains(o.Accept, string(f.Kind)) || slices.Contains(o.Accept, string(f.Kind)+"/"+f.Subject)
}

func (o *Options) counts(f *health.Finding) bool {
	order := state.Severities()
	return !o.accepts(f) && slices.Contains(order, f.Severity) && slices.Index(order, f.Severity) <= slices.Index(order, o.FailOn)
}
