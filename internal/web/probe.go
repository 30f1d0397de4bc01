package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/api"
)

// newProbe serves the metrics of the pairs with a target as blackbox_exporter would. It starts no run.
func newProbe(all prometheus.Gatherer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		target, device := query.Get("target"), query.Get("device")
		families, _ := all.Gather() // No metric of a path is among the broken ones.
		pairs, working := 0, 0
		families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool {
			f.Metric = slices.DeleteFunc(f.Metric, func(m *dto.Metric) bool {
				has := func(name, value string) bool {
					return slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == name && l.GetValue() == value })
				}
				return !has("peer", target) || device != "" && !has("device", device)
			})
			switch f.GetName() {
			case "rdma_path_timestamp_seconds":
				pairs = len(f.Metric)
			case "rdma_path_success": // A pair that could not be tried has none.
				for _, m := range f.Metric {
					working += int(m.Gauge.GetValue())
				}
				return true
			}
			f.Name = new(strings.Replace(f.GetName(), "rdma_path", "probe", 1))
			return len(f.Metric) == 0
		})
		switch {
		case target == "":
			respond(w, http.StatusBadRequest, "target is missing: use HOST:PORT of a peer.")
		case cmp.Or(query.Get("module"), "ud") != "ud":
			respond(w, http.StatusBadRequest, "There is no such module: use ud.")
		case pairs == 0:
			respond(w, http.StatusNotFound, "There is no result for this target and device: "+api.Path+" lists the pairs.")
		default:
			success := prometheus.NewRegistry()
			success.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "probe_success", Help: "Whether all these pairs work."},
				func() float64 { return map[bool]float64{true: 1}[working == pairs] }))
			found := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, nil })
			promhttp.HandlerFor(prometheus.Gatherers{success, found}, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
		}
	})
}
