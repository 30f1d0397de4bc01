package main

import (
	"fmt"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/web"
)

// A retiredFlag has no effect. Its text says what applies instead.
type retiredFlag struct{ name, now string }

// retiredFlags returns the flags of 0.1.0 that the next release accepts and ignores. The chart
// repeats them in files/retired-flags.yaml.
func retiredFlags() []retiredFlag {
	return []retiredFlag{
		{"collector.vectors", "use --notification.vectors=1 to measure a single completion vector"},
		{"collector.verbs", "always on; drop its series by metric_relabel_configs of Prometheus"},
		{"counters.include", "drop series by metric_relabel_configs of Prometheus"},
		{"discovery.interval", "always 5s, or --probe.interval if that is shorter"},
		{"hardware.timeout", "use --inventory.timeout, which limits both"},
		{"inventory.max-objects", "always 20000"},
		{"inventory.owners", "always 10"},
		{"notification.budget", "follows from --probe.timeout: 2s by default"},
		{"notification.deadline", "follows from --probe.timeout: 500ms by default"},
		{"notification.vector-list", "use --notification.vectors, which spreads them evenly"},
		{"path.cgroup", "always /sys/fs/cgroup"},
		{"path.procfs", "always /proc"},
		{"probe.jitter", "always 0.1"},
		{"probe.max-backoff", "always five times --probe.interval, at most 5m"},
		{"web.enable-lifecycle", "reload by SIGHUP"},
		{"web.max-requests", fmt.Sprintf("always %d", web.MaxRequests)},
	}
}

// retired collects the retired flags of a command line.
type retired struct{ set map[string]*bool }

func addRetired(app *kingpin.Application) *retired {
	r := &retired{set: make(map[string]*bool)}
	for _, f := range retiredFlags() {
		set := new(bool)
		r.set[f.name] = set
		clause := app.Flag(f.name, "Ignored: "+f.now+".").Hidden().IsSetByUser(set)
		switch f.name {
		case "collector.vectors", "collector.verbs", "web.enable-lifecycle":
			clause.Bool()
		default:
			clause.Strings()
		}
	}
	return r
}

// warn calls tell for each retired flag that is set.
func (r *retired) warn(tell func(flag, now string)) {
	for _, f := range retiredFlags() {
		if r != nil && *r.set[f.name] {
			tell("--"+f.name, f.now)
		}
	}
}

func (s stdio) ignored(flag, now string) {
	fmt.Fprintf(s.err, "%s: warning: %s is ignored: %s\n", programName, flag, now)
}
