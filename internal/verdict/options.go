package verdict

import (
	"errors"
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

const (
	maxFor = 24 * time.Hour
	// maxClearAfter is how long the exporter remembers a finding that is over.
	maxClearAfter = 10 * time.Minute
)

// Default returns the default options.
func Default() Options {
	return Options{For: 2 * time.Minute, ClearAfter: 5 * time.Minute, FailOn: health.SeverityCritical, Devices: -1, ActivePorts: -1}
}

// Parse returns the options of a query. The error names what is wrong with a parameter.
func Parse(query url.Values) (Options, error) {
	o := Default()
	for key, values := range query {
		for _, value := range values {
			if err := o.set(key, value); err != nil {
				return o, fmt.Errorf("%s is %q: %w", key, value, err)
			}
		}
	}
	return o, nil
}

func (o *Options) set(key, value string) (err error) {
	switch key {
	case "for":
		o.For, err = span(value, maxFor)
	case "clear_after":
		o.ClearAfter, err = span(value, maxClearAfter)
	case "expect_devices":
		o.Devices, err = number(value)
	case "expect_active_ports":
		o.ActivePorts, err = number(value)
	case "fail_on":
		if o.FailOn = health.Severity(value); o.FailOn != health.SeverityWarning && o.FailOn != health.SeverityCritical {
			err = errors.New("use warning or critical")
		}
	case "accept":
		o.Accept = append(o.Accept, value)
		if kind, _, _ := strings.Cut(value, "/"); !slices.Contains(health.AcceptableKinds(), health.Kind(kind)) {
			err = errors.New("there is no such finding; docs/reference/findings.md lists them")
		}
	default:
		err = errors.New("there is no such parameter")
	}
	return err
}

func span(s string, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > most {
		return 0, fmt.Errorf("use a duration from 0s to %.0fm", most.Minutes())
	}
	return d, nil
}

func number(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, errors.New("use a whole number from 0 to 65535")
	}
	return int(n), nil
}

func (o *Options) counts(f *health.Finding) bool {
	severe := f.Severity == health.SeverityCritical || o.FailOn == health.SeverityWarning
	return severe && f.Counts() && !slices.ContainsFunc(o.Accept, func(a string) bool {
		kind, subject, one := strings.Cut(a, "/")
		return kind == string(f.Kind) && (!one || subject == f.Subject)
	})
}
