//go:build prometheus

package prometheus_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// job is the name of the job that the alerts expect.
const job = "rdma_exporter"

// startPrometheus starts a Prometheus that scrapes the targets and evaluates rules at
// an interval, whatever the groups of the rules ask for, and waits until it answers.
func startPrometheus(t testing.TB, rules []ruleFile, scrapes time.Duration, targets ...string) *api {
	t.Helper()
	return start(t, running.FindPrometheus(t, "prometheus"), nil, rules, scrapes, targets...)
}

func start(t testing.TB, program string, flags []string, rules []ruleFile, scrapes time.Duration, targets ...string) *api {
	t.Helper()
	config := map[string]any{
		"global": map[string]any{
			"scrape_interval":     scrapes.String(),
			"scrape_timeout":      scrapes.String(),
			"evaluation_interval": scrapes.String(),
		},
		"scrape_configs": []any{map[string]any{
			"job_name":       job,
			"static_configs": []any{map[string]any{"targets": targets}},
		}},
	}
	var files []string
	for _, rules := range rules {
		files = append(files, running.File(t, rules.name, rules.hurried(t)))
	}
	config["rule_files"] = files
	return &api{Prometheus: running.StartPrometheus(t, program, config, flags...), scrapes: scrapes}
}

// settled waits until each target was scraped, or refused it, as is expected of it,
// and each rule was evaluated. No rule may fail.
func (a *api) settled(t testing.TB, up, down []string) {
	t.Helper()
	running.Eventually(t, fmt.Sprintf("%d targets are up and %d are down", len(up), len(down)), func() bool {
		a.MustRun(t)
		state := a.byInstance(t, "up", time.Now())
		for _, instance := range up {
			if state[instance] != 1 {
				return false
			}
		}
		for _, instance := range down {
			if value, ok := state[instance]; !ok || value != 0 {
				return false
			}
		}
		return true
	})
	running.Eventually(t, "each rule is evaluated", func() bool {
		a.MustRun(t)
		evaluated := running.Must(a.rulesEvaluated())(t)
		return evaluated
	})
}

// byInstance returns the value of an expression for each instance at a time.
func (a *api) byInstance(t testing.TB, expression string, at time.Time) map[string]float64 {
	t.Helper()
	results := running.Must(a.query(expression, at))(t)
	values := make(map[string]float64)
	for _, r := range results {
		values[r.labels["instance"]] = r.samples[0]
	}
	return values
}

// returns waits until an expression returns data.
func (a *api) returns(t testing.TB, expression string) {
	t.Helper()
	running.Eventually(t, expression+" returns data", func() bool {
		a.MustRun(t)
		found := running.Must(a.query(expression, time.Now()))(t)
		return len(found) > 0
	})
}

// checkAlerts makes sure that the texts of the alerts that are pending or fire could
// be made.
func (a *api) checkAlerts(t testing.TB) {
	t.Helper()
	var data struct {
		Alerts []struct{ Labels, Annotations map[string]string }
	}
	running.Check(t, a.Ask("alerts", nil, &data))
	if len(data.Alerts) == 0 {
		t.Error("no alert is pending")
	}
	for _, alert := range data.Alerts {
		for name, text := range alert.Annotations {
			for _, bad := range []string{"<error expanding template", "<no value>", "%!"} {
				if strings.Contains(text, bad) {
					t.Errorf("%s: %s says %q", alert.Labels["alertname"], name, text)
				}
			}
		}
	}
}

// checkLog makes sure that Prometheus has not complained, as of samples that it could
// not take.
func (a *api) checkLog(t testing.TB) {
	t.Helper()
	metrics := running.Must(a.Get("/metrics"))(t)
	for line := range strings.Lines(a.Log.String()) {
		if (strings.Contains(line, "level=warn") || strings.Contains(line, "level=error")) && !evaluatedAgain(line, string(metrics)) {
			t.Errorf("Prometheus says: %s", line)
		}
	}
}

// evaluatedAgain reports whether Prometheus, whose metrics are given, complains of what
// comes of a stall alone: a group of rules that missed its time, as it counts, is then
// evaluated twice for the same.
func evaluatedAgain(line, metrics string) bool {
	again := regexp.MustCompile(`group=(\w+) .*msg="Error on ingesting results from rule evaluation with different value but same timestamp"`).FindStringSubmatch(line)
	return again != nil && regexp.MustCompile(`(?m)^prometheus_rule_group_iterations_missed_total\{rule_group="[^"]*;`+again[1]+`"\} [1-9]`).MatchString(metrics)
}
