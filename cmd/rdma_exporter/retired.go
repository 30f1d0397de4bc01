package main

import (
	"fmt"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/web"
)

// A retiredFlag has no effect. Its text says what applies instead. It is set if it was given.
type retiredFlag struct {
	name, now string
	set       bool
}

// retiredFlags returns the flags of 0.1.0 that the next release accepts and ignores. The chart
// repeats them in files/retired-flags.yaml.
func retiredFlags() retired {
	return retired{
		{name: "collector.vectors", now: "use --notification.vectors=1 to measure a single completion vector"},
		{name: "collector.verbs", now: "always on; drop its series by metric_relabel_configs of Prometheus"},
		{name: "counters.include", now: "drop series by metric_relabel_configs of Prometheus"},
		{name: "discovery.interval", now: "always 5s, or --probe.interval if that is shorter"},
		{name: "hardware.timeout", now: "use --inventory.timeout, which limits both"},
		{name: "inventory.max-objects", now: "always 20000"},
		{name: "inventory.owners", now: "always 10"},
		{name: "notification.budget", now: "follows from --probe.timeout: 2s by default"},
		{name: "notification.deadline", now: "follows from --probe.timeout: 500ms by default"},
		{name: "notification.vector-list", now: "use --notification.vectors, which spreads them evenly"},
		{name: "path.cgroup", now: "always /sys/fs/cgroup"},
		{name: "path.procfs", now: "always /proc"},
		{name: "probe.jitter", now: "always 0.1"},
		{name: "probe.max-backoff", now: "always five times --probe.interval, at most 5m"},
		{name: "web.enable-lifecycle", now: "reload by SIGHUP"},
		{name: "web.max-requests", now: fmt.Sprintf("always %d", web.MaxRequests)},
	}
}

type retired []retiredFlag

func addRetired(app *kingpin.Application) retired {
	all := retiredFlags()
	for i := range all {
		f := &all[i]
		clause := app.Flag(f.name, "Ignored: "+f.now+".").Hidden().IsSetByUser(&f.set)
		switch f.name {
		case "collector.vectors", "collector.verbs", "web.enable-lifecycle":
			clause.Bool()
		default:
			clause.Strings()
		}
	}
	return all
}

func (r retired) warn(tell func(flag, now string)) {
	for _, f := range r {
		if f.set {
			tell("--"+f.name, f.now)
		}
	}
}

func (s stdio) ignored(flag, now string) {
	fmt.Fprintf(s.err, "%s: warning: %s is ignored: %s\n", programName, flag, now)
}
