//go:build drill

package drill_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"rdma_exporter/collector"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

const (
	// pathNodes are below pathToRs switches, with pathRails devices each.
	pathNodes, pathToRs, pathRails = 50, 10, 4
	// workedFor is how long all paths work: the rules ask what was ten minutes ago.
	workedFor = 11 * time.Minute
	// lostFor is how long they are lost.
	lostFor = 8 * time.Minute
)

func pathPeers() (all []path.Peer) {
	for n := range pathNodes {
		all = append(all, path.Peer{Target: fmt.Sprintf("node%d:10879", n), ToR: fmt.Sprintf("tor%d", n%pathToRs)})
	}
	return all
}

// pathDevices returns the devices of a node, each with the paths that it would have. dead says
// which pairs are lost.
func pathDevices(self path.Peer, dead func(rail int, from, to path.Peer) bool) *state.Snapshot {
	s := &state.Snapshot{Provider: "libibverbs", Ready: true}
	for rail := range pathRails {
		name := fmt.Sprintf("mlx5_%d", rail)
		run := &state.Run{Kind: state.KindProbe, Device: name, Started: time.Now(), Outcome: state.OutcomeOK}
		d := state.DeviceState{Name: name, Present: true, Info: &state.Device{Ports: []state.Port{{Number: 1, State: "active"}}}, Last: run, Full: run, LastSuccess: run.Started}
		for _, to := range path.Choose(self, pathPeers()) {
			p := state.PathState{Path: state.Path{
				Peer: to.Target, PeerDevice: name, Rail: name, PeerRail: name, ToR: self.ToR, PeerToR: to.ToR,
				Result: state.PathOK, Sent: 9, Flows: 3, MTU: 4096, RTTMin: 4e3, RTTMedian: 5e3, RTTMax: 9e3,
			}, At: time.Now(), Worked: time.Now()}
			if dead(rail, self, to) {
				p.Result, p.Suspect, p.LostForward, p.Failures = state.PathForward, state.SuspectPath, 9, 2
			}
			d.Paths = append(d.Paths, p)
		}
		s.Devices = append(s.Devices, d)
	}
	return s
}

// TestPaths has a real Prometheus scrape 50 nodes in each of three clusters, in which a rail, a
// ToR, or nothing dies, and verifies that one cause raises one alert.
func TestPaths(t *testing.T) {
	var broken atomic.Bool
	mux := http.NewServeMux()
	var targets []any
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	clusters := map[string]struct {
		alert string
		dead  func(rail int, from, to path.Peer) bool
	}{
		"rail": {"RDMAPathRailDown", func(rail int, _, _ path.Peer) bool { return rail == 2 }},
		"tor":  {"RDMAPathToRDown", func(_ int, from, to path.Peer) bool { return from.ToR == "tor3" || to.ToR == "tor3" }},
		"well": {"", func(int, path.Peer, path.Peer) bool { return false }},
	}
	for cluster, c := range clusters {
		for n, self := range pathPeers() {
			evaluator := health.New(health.Default(), health.History{})
			metrics := collector.New(collector.Options{Host: func() *health.Host {
				return evaluator.Evaluate(pathDevices(self, func(rail int, from, to path.Peer) bool { return broken.Load() && c.dead(rail, from, to) }))
			}})
			registry := prometheus.NewRegistry()
			running.Check(t, registry.Register(metrics))
			where := fmt.Sprintf("/%s/%d/metrics", cluster, n)
			mux.Handle(where, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
			targets = append(targets, map[string]any{
				"targets": []string{running.Must(url.Parse(server.URL))(t).Host},
				"labels":  map[string]string{"cluster": cluster, "instance": self.Target, "__metrics_path__": where},
			})
		}
	}
	prometheus := running.StartPrometheus(t, running.FindPrometheus(t, "prometheus"), map[string]any{
		"global":         map[string]any{"scrape_interval": "30s", "scrape_timeout": "30s", "evaluation_interval": "30s"},
		"rule_files":     pace(1).rules(t, filepath.Join(root(), "alerts")),
		"scrape_configs": []any{map[string]any{"job_name": "rdma_exporter", "static_configs": targets}},
	})
	w := &watch{prometheus: prometheus, seen: make(map[string]*alert)}
	w.until(t, time.Now().Add(workedFor), nil)
	broken.Store(true)
	w.broken = time.Now()
	w.until(t, w.broken.Add(lostFor), nil)
	for cluster, c := range clusters {
		raised := w.of(cluster)
		for _, a := range raised {
			fmt.Printf("%s: %s after %s: %s. %s\n", cluster, a.title(), a.first.Sub(w.broken).Round(time.Second), a.Annotations["summary"], a.Annotations["description"])
		}
		if ok := len(raised) == 0 && c.alert == "" || len(raised) == 1 && raised[0].Labels["alertname"] == c.alert; !ok {
			t.Errorf("%s: %d alerts, want one %q", cluster, len(raised), c.alert)
		}
		for _, record := range []string{"instance_peer:rdma_path_success:min", "job_rail_peer:rdma_path_success:avg"} {
			for value := range 2 {
				var data struct {
					Result []struct{ Value [2]any }
				}
				query := fmt.Sprintf("count(%s{cluster=%q} == %d)", record, cluster, value)
				running.Check(t, prometheus.Ask("query", url.Values{"query": {query}}, &data))
				fmt.Println(query, data.Result)
			}
		}
	}
}
