//go:build scale

package scale_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// scraped is how often the page has the nodes scraped, and rules evaluated whose group
	// does not say how often.
	scraped = 30 * time.Second
	// mostLooks is how many rules the page lists.
	mostLooks = 8
)

// span parses a duration of PromQL.
func span(t *testing.T, text string) time.Duration {
	t.Helper()
	days, ok := strings.CutSuffix(text, "d")
	if ok {
		text = days + "h"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	if ok {
		d *= 24
	}
	return d
}

// recorded returns how many series a recording rule makes of a host, by the level that
// its name begins with.
func recorded(t *testing.T, name string, h *host) int {
	t.Helper()
	devices := h.counts["D"]
	level, _, _ := strings.Cut(name, ":")
	switch level {
	case "instance":
		return 1
	case "instance_device", "instance_device_port": // with one port each
		return devices
	case "instance_device_path", "instance_device_verb":
		return 2 * devices
	case "job_model_contract":
		return 0
	case "instance_device_type":
		return 4*devices + h.counts["S"]
	case "instance_device_contract":
		return 0 // They are of verdicts that changed.
	}
	t.Fatalf("nobody taught the test the level of %s", name)
	return 0
}

// looks returns the rules that look back at most samples.
func looks(t *testing.T, h *host) string {
	t.Helper()
	type look struct {
		name    string
		every   time.Duration
		samples int
	}
	var all []look
	every := make(map[string]time.Duration)
	for _, u := range readRules(t) {
		every[u.record] = u.every
	}
	// An expression in whose range there is another one would be more than this knows.
	ranges := regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^{}]*\})?)\[(\w+)\]`)
	for _, u := range readRules(t) {
		one := look{name: u.name, every: u.every}
		found := ranges.FindAllStringSubmatch(u.expr, -1)
		if strings.Count(u.expr, "[") != len(found) {
			t.Errorf("nobody taught the test all ranges of %s", u.name)
		}
		for _, m := range found {
			s, interval, series := selectors(m[1])[0], scraped, 0
			switch {
			case strings.Contains(s.metric, ":"):
				series, interval = recorded(t, s.metric, h), every[s.metric]
			case s.metric == "up":
				series = 1
			default:
				for _, x := range h.samples {
					if s.selects(x) {
						series++
					}
				}
			}
			one.samples += series * int(span(t, m[2])/interval)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(x, y look) int { return cmp.Compare(y.samples, x.samples) })
	var rows [][]string
	for _, one := range all[:mostLooks] {
		rows = append(rows, []string{
			"`" + one.name + "`", thousands(one.samples), fmt.Sprint(one.every),
			thousands(1000 * one.samples), strconv.FormatFloat(1000*float64(one.samples)/one.every.Seconds()/1e6, 'f', 2, 64),
		})
	}
	return tableOf([]string{"rule", "samples of a node", "evaluated every", "samples of 1 000 nodes", "of these in a second, millions"}, rows)
}
