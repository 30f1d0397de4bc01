//go:build vm

package softroce

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

// contracts is how many there are.
const contracts = 29

// violations is a program that shows, by the shortest sequences of verbs, which
// promises of the manual a device breaks. It shares nothing with the exporter.
func violations(t testing.TB) string {
	t.Helper()
	source := running.Must(filepath.Abs("../yardstick/violations.c"))(t)
	program := filepath.Join(t.TempDir(), "violations")
	running.Command(t, "cc", "-o", program, source, "-libverbs")
	return program
}

// seenBy returns the contracts that the program saw violated.
func seenBy(t testing.TB, program, device string) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(running.Command(t, program, device)) {
		name, what, found := strings.Cut(line, ":")
		if !found {
			t.Fatalf("%s: %q", program, line)
		}
		t.Logf("%s, by the program: %s:%s", device, name, strings.TrimSpace(what))
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// The verdicts on a real driver: an independent program must come to the same on
// what is violated, and nothing else may be.
func TestContracts(t *testing.T) {
	program := violations(t)
	e := start(t, options{flags: []string{"--contract.interval=1h", seldom}})
	m := e.until("the contracts of both devices to be judged", func(m metrics) bool {
		return len(m.find("rdma_contract_duration_seconds", "device", active)) == 1 &&
			len(m.find("rdma_contract_duration_seconds", "device", down)) == 1
	})
	exact := kernel(t, "6.1")
	for device, skipped := range map[string][]string{
		active: nil,
		down:   {"notify_solicited_delivers_solicited", "notify_solicited_skips_unsolicited", "qp_sq_sig_all", "srq_limit_disarmed", "srq_limit_event"},
	} {
		var violated, got []string
		judged := int(m.sum("rdma_contract_verdicts", "device", device))
		for _, s := range m.find("rdma_contract_violated", "device", device) {
			if number(s) == 1 {
				violated = append(violated, label(s, "contract"))
				if label(s, "known") != "true" {
					t.Errorf("%s violates %s, and nothing is known of it", device, label(s, "contract"))
				}
			}
		}
		slices.Sort(violated)
		if want := seenBy(t, program, device); !slices.Equal(violated, want) {
			t.Errorf("%s violates %v, and %v by the program", device, violated, want)
		}
		soft := []string{"notify_solicited_delivers_errors", "qp_reports_actual", "qp_srq_type_restricted", "srq_limit_ignored", "srq_reports_actual"}
		// Batches are a matter of the library.
		byKernel := slices.DeleteFunc(slices.Clone(violated), func(name string) bool { return name == "cq_ex_batch_keeps_completions" })
		if exact && !slices.Equal(byKernel, soft) {
			t.Errorf("%s violates %v, on this kernel always %v", device, byKernel, soft)
		}
		for _, s := range m.find("rdma_contract_skipped", "device", device) {
			got = append(got, label(s, "contract"))
			if reason := label(s, "reason"); reason != "port_down" {
				t.Errorf("%s: %s is skipped: %s", device, label(s, "contract"), reason)
			}
		}
		if slices.Sort(got); !slices.Equal(got, skipped) {
			t.Errorf("%s: skipped are %v, want %v", device, got, skipped)
		}
		if got := notOffered(t, e, device); len(got) > 0 {
			t.Errorf("%s: not offered are %v", device, got)
		}
		if judged != contracts {
			t.Errorf("%s: %d verdicts, of %d contracts", device, judged, contracts)
		}
		m.is(t, 1, "rdma_contract_runs_total", "device", device, "outcome", "ok")
		if n := len(m.find("rdma_probe_undestroyed_objects", "device", device)); n > 0 {
			t.Errorf("%s: %d kinds of objects are left", device, n)
		}
		t.Logf("%s: judged in %.2f s; violated %v; skipped %v", device,
			m.one(t, "rdma_contract_duration_seconds", "device", device), violated, got)
		for _, name := range violated {
			if !strings.Contains(e.log.String(), name) {
				t.Errorf("%s: the log has no evidence of %s", device, name)
			}
		}
	}
	e.rounds(1)
	e.terminate()
}

// Completions are measured on both paths where the port is active, and on the
// flush path where it is not, on as many vectors as are asked for.
func TestNotification(t *testing.T) {
	const wanted = 100 // the default number of samples
	e := start(t, options{flags: []string{"--notification.vectors=1"}})
	m := e.rounds(3)
	type series struct{ name, path, mode string }
	all := []series{
		{"rdma_notification_latency_seconds", "loopback", ""},
		{"rdma_completion_latency_seconds", "loopback", "solicited"},
		{"rdma_completion_latency_seconds", "loopback", "poll"},
		{"rdma_notification_latency_seconds", "flush", ""},
		{"rdma_completion_latency_seconds", "flush", "poll"},
	}
	for device, has := range map[string][]series{active: all, down: all[3:]} {
		m.allOK(t, device)
		m.is(t, 1, "rdma_probe_success", "device", device, "probe", "notification")
		for _, s := range all {
			labels := []string{"device", device, "path", s.path, "port", "1"}
			if s.mode != "" {
				labels = append(labels, "mode", s.mode)
			}
			found := m.find(s.name, labels...)
			if !slices.Contains(has, s) {
				if len(found) > 0 {
					t.Errorf("%s%q, though the port is down", s.name, labels)
				}
				continue
			}
			if len(found) != 1 {
				t.Errorf("%d series %s%q", len(found), s.name, labels)
				continue
			}
			// One of them has nothing.
			n := found[0].GetHistogram().GetSampleCount() + found[0].GetSummary().GetSampleCount()
			sum := found[0].GetHistogram().GetSampleSum() + found[0].GetSummary().GetSampleSum()
			// A short run measures one path, the nearest to what programs do.
			runs := m.runs(device)
			if device == active && s.path == "flush" {
				runs = 2
			}
			if float64(n) < wanted*(runs-1) {
				t.Errorf("%s%q: %d samples after %v runs", s.name, labels, n, runs)
			}
			t.Logf("%s %s %s: %d samples, mean %.1f µs", device, s.path, s.mode, n, 1e6*sum/float64(n))
		}
		vectors := make(map[string]bool)
		for _, s := range m.find("rdma_notification_vector_latency_seconds", "device", device) {
			vectors[label(s, "comp_vector")] = true
			t.Logf("%s vector %s: 99 of 100 take %.1f µs", device, label(s, "comp_vector"), 1e6*number(s))
		}
		if !vectors["0"] || len(vectors) != 1 {
			t.Errorf("%s: vectors %v after three runs of one each, want 0 alone", device, slices.Sorted(maps.Keys(vectors)))
		}
		for _, name := range []string{
			"rdma_notifications_missed_total", "rdma_notifications_spurious_total", "rdma_notifications_misdirected_total",
			"rdma_completions_missing_total", "rdma_completions_unsuccessful_total",
		} {
			if n := m.sum(name, "device", device); n != 0 {
				t.Errorf("%s of %s: %v", name, device, n)
			}
		}
	}
	m.is(t, 1, "rdma_probe_skipped", "device", down, "probe", "notification", "reason", "port_down")
	e.terminate()
}

// TestManyVectors is for a machine with more vectors than the usual one.
func TestManyVectors(t *testing.T) {
	e := start(t, options{flags: []string{"--notification.samples=20"}})
	m := e.rounds(1, active)
	vectors := m.one(t, "rdma_device_completion_vectors", "device", active)
	used := min(4, int(vectors)) // by default
	m = e.rounds(3, active)
	if found := m.find("rdma_notification_vector_latency_seconds", "device", active); len(found) != used ||
		len(m.find("rdma_notification_vector_latency_seconds", "device", active, "comp_vector", fmt.Sprint(vectors-1))) != 1 {
		t.Errorf("%d of %v vectors are measured, want %d with the last", len(found), vectors, used)
	}
	e.terminate()
}

// notOffered returns the contracts that could not be judged since the device does not offer
// what they are about, which is in the JSON alone.
func notOffered(t *testing.T, e *exporter, device string) []string {
	t.Helper()
	status := running.Must(statusFrom(client, e.url))(t)
	var names []string
	for _, d := range status.Devices {
		if d.Name != device || d.Contracts == nil {
			continue
		}
		for _, v := range d.Contracts.Verdicts {
			if v.Verdict == state.VerdictSkipped && v.Reason == state.SkipNotSupported {
				names = append(names, v.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}
