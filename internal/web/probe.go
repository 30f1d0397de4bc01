package web

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// newProbe serves the last result for a pair in the form of blackbox_exporter. It starts no run.
func newProbe(c Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		target, device, module := query.Get("target"), query.Get("device"), cmp.Or(query.Get("module"), "ud")
		found := make(map[string]*state.PathState) // the last result of each device
		for _, d := range cmp.Or(c.Snapshot(), new(state.Snapshot)).Devices {
			for i := range d.Paths {
				p, last := &d.Paths[i], found[d.Name]
				if p.Peer == target && (device == "" || device == d.Name) && (last == nil || p.At.After(last.At)) {
					found[d.Name] = p
				}
			}
		}
		names := slices.Sorted(maps.Keys(found))
		switch {
		case target == "":
			respond(w, http.StatusBadRequest, "target is missing: use HOST:PORT of a peer.")
		case module != "ud":
			respond(w, http.StatusBadRequest, "There is no such module: use ud.")
		case len(names) == 0:
			respond(w, http.StatusNotFound, "There is no result for this target and device: "+api.Path+" lists the pairs.")
		case len(names) > 1:
			respond(w, http.StatusBadRequest, text.Clean("device is missing: use one of "+strings.Join(names, ", ")+"."))
		default:
			promhttp.HandlerFor(probed(found[names[0]]), promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
		}
	})
}

// probed returns the metrics of a result. Those without a value are absent.
func probed(p *state.PathState) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	add := func(is bool, name, help string, labels []string, values map[string]float64) {
		gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		for of, value := range values {
			gauge.WithLabelValues([]string{of}[:len(labels)]...).Set(value)
		}
		if is {
			registry.MustRegister(gauge)
		}
	}
	add(true, "probe_success", "Whether the path works.", nil, map[string]float64{"": map[bool]float64{false: 1}[p.Failed()]})
	add(true, "rdma_path_timestamp_seconds", "Start of the last run, in seconds since the epoch.", nil, map[string]float64{"": float64(p.At.UnixMilli()) / 1e3})
	add(p.Sent > 0, "rdma_path_packets_lost", "Packets that the last run lost.", []string{"direction"},
		map[string]float64{"forward": float64(p.LostForward), "reverse": float64(p.LostReverse)})
	add(p.RTTMedian > 0, "rdma_path_rtt_seconds", "Round trip time in the last run.", []string{"stat"},
		map[string]float64{"min": p.RTTMin.Seconds(), "median": p.RTTMedian.Seconds(), "max": p.RTTMax.Seconds()})
	return registry
}
