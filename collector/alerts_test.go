package collector_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

// absentAtFirst are the counters of the rules that appear with their first event, and why.
func absentAtFirst() map[string]string {
	return map[string]string{
		"rdma_verbs_errors_total": "there is one for each verb and errno; the rule wants three failures in half an hour, and misses those of the first run",
	}
}

func ruleCounters(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, path := range []string{"../alerts/alerts.yaml", "../alerts/recording.yaml"} {
		b := running.Must(os.ReadFile(path))(t)
		names = append(names, regexp.MustCompile(`\brdma_\w+_total\b`).FindAllString(string(b), -1)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestAlertCounters verifies that a counter which a rule uses is exposed from the start. A series
// that appears with its first event hides that event from increase().
func TestAlertCounters(t *testing.T) {
	t.Parallel()
	names, seen := ruleCounters(t), make(map[string]bool)
	for _, table := range counters.Tables() {
		for _, layer := range []string{"Ethernet", "InfiniBand"} {
			before := eventful(t, table, layer, 0)
			for series := range eventful(t, table, layer, 1) {
				name, _, _ := strings.Cut(series, "{")
				if !slices.Contains(names, name) {
					continue
				}
				seen[name] = true
				_, exposed := before[series]
				switch reason := absentAtFirst()[name]; {
				case exposed && before[series] != "0" && reason == "":
					t.Errorf("%s, %s: %s starts with %s", table.Name, layer, series, before[series])
				case !exposed && reason == "":
					t.Errorf("%s, %s: a rule uses %s, which is absent before its first event", table.Name, layer, series)
				case exposed && reason != "":
					t.Errorf("%s is not absent at first any more", series)
				}
			}
		}
	}
	for _, name := range names {
		if !seen[name] {
			t.Errorf("no device has %s, which a rule uses", name)
		}
	}
}

// eventful returns the series of an adapter with all counters of a driver, and on which everything that
// is counted has happened n times.
func eventful(t *testing.T, table counters.Table, layer string, n int) map[string]string {
	t.Helper()
	s := adapter()
	h := s.snapshot.Devices[0].Hardware
	port := &h.Latest.Ports[0]
	h.Latest.Table, h.Latest.Driver, port.LinkLayer, port.Counters = table.Name, table.Name, layer, nil
	h.Latest.Identity.AER = &state.AER{Correctable: uint64(n), Nonfatal: uint64(n), Fatal: uint64(n)}
	h.Links = []state.Link{{Port: 1, Ups: uint64(n), Downs: uint64(n), GIDChanges: uint64(n)}}
	for _, of := range counters.Tables() {
		if of.Name != "" && of.Name != table.Name {
			continue // The rows without a driver are of each device.
		}
		for _, r := range of.Rows {
			name := strings.Replace(r.Name, "N", "3", 1) // a priority
			port.Counters = append(port.Counters, state.Counter{Group: r.Group, Name: name, Value: uint64(n)})
		}
	}
	run := s.runs[0]
	for i := range run.Probes {
		for j := range run.Probes[i].Latencies {
			l := &run.Probes[i].Latencies[j]
			l.Missed, l.Missing, l.Spurious, l.Misdirected = n, n, n, n
		}
	}
	for i := range n {
		run.Calls[i].Errno = "EIO"
		run.Events = append(run.Events, state.Events{Type: "IBV_EVENT_QP_FATAL", Count: 1})
	}
	return values(t, s.collector())
}
