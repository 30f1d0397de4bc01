package web

import (
	"cmp"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
)

// newProbe serves the last result for a pair in the form of blackbox_exporter. It starts no run.
func newProbe(c Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		target, device := query.Get("target"), query.Get("device")
		var found []*state.PathState
		for _, d := range cmp.Or(c.Snapshot(), new(state.Snapshot)).Devices {
			for i := range d.Paths {
				if d.Paths[i].Peer == target && (device == "" || device == d.Name) {
					found = append(found, &d.Paths[i])
				}
			}
		}
		switch {
		case target == "":
			respond(w, http.StatusBadRequest, "target is missing: use HOST:PORT of a peer.")
		case cmp.Or(query.Get("module"), "ud") != "ud":
			respond(w, http.StatusBadRequest, "There is no such module: use ud.")
		case len(found) == 0:
			respond(w, http.StatusNotFound, "There is no result for this target and device: "+api.Path+" lists the pairs.")
		case len(found) > 1:
			respond(w, http.StatusBadRequest, "device is missing: several ask this target. "+api.Path+" lists the pairs.")
		default:
			promhttp.HandlerFor(probed(found[0]), promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
		}
	})
}

// probed returns the metrics of a result. Those without a value are absent.
func probed(p *state.PathState) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	add := func(value float64, name, help string, labels prometheus.Labels) {
		opts := prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}
		registry.MustRegister(prometheus.NewGaugeFunc(opts, func() float64 { return value }))
	}
	add(map[bool]float64{false: 1}[p.Failed()], "probe_success", "Whether the path works.", nil)
	add(float64(p.At.UnixMilli())/1e3, "probe_timestamp_seconds", "Start of the last run, in seconds since the epoch.", nil)
	for direction, n := range map[string]int{"forward": p.LostForward, "reverse": p.LostReverse} {
		if p.Sent > 0 {
			add(float64(n), "probe_packets_lost", "Packets that the last run lost.", prometheus.Labels{"direction": direction})
		}
	}
	for stat, rtt := range map[string]time.Duration{"min": p.RTTMin, "median": p.RTTMedian, "max": p.RTTMax} {
		if rtt > 0 {
			add(rtt.Seconds(), "probe_rtt_seconds", "Round trip time in the last run.", prometheus.Labels{"stat": stat})
		}
	}
	return registry
}
