package health_test

import (
	"cmp"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

func TestValidateAccepts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		accept health.Accept
		says   string // Empty for one that can be used.
	}{
		{"the least", health.Accept{Finding: "port_down", Reason: "not cabled"}, ""},
		{"all", health.Accept{Finding: "contract_violated", Contract: "notify_any", Device: "mlx5_[0-3]", Reason: "ticket 4711", Until: "2026-12-31"}, ""},
		{"no finding", health.Accept{Reason: "x"}, "accept[0].finding is missing: name a kind"},
		{"another finding", health.Accept{Finding: "porn_down", Reason: "x"}, `accept[0].finding is "porn_down": there is no such finding`},
		{"the finding about acceptances", health.Accept{Finding: health.FindingAcceptanceUnused, Reason: "x"}, "there is no such finding of a device"},
		{"a contract of another finding", health.Accept{Finding: "port_down", Contract: "notify_any", Reason: "x"}, "it goes with finding contract_violated only"},
		{"half an expression", health.Accept{Finding: "port_down", Device: "mlx5_(", Reason: "x"}, "accept[0].device is \"mlx5_(\": missing closing )"},
		{"an expression that leaves its brackets", health.Accept{Finding: "port_down", Device: "a)|(b", Reason: "x"}, "accept[0].device is \"a)|(b\": unexpected )"},
		{"no reason", health.Accept{Finding: "port_down", Reason: " \t"}, "accept[0].reason is missing"},
		{"the longest reason", health.Accept{Finding: "port_down", Reason: strings.Repeat("ä", 500)}, ""},
		{"a long reason", health.Accept{Finding: "port_down", Reason: strings.Repeat("ä", 501)}, "accept[0].reason is too long"},
		{"no day", health.Accept{Finding: "port_down", Reason: "x", Until: "2026-02-30"}, `accept[0].until is "2026-02-30": use a day such as 2026-12-31`},
		{"a moment", health.Accept{Finding: "port_down", Reason: "x", Until: "2026-02-28T12:00:00Z"}, "use a day such as"},
	} {
		switch err := health.ValidateAccepts([]health.Accept{tt.accept}); {
		case tt.says == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.says)
		}
	}
	if err := health.ValidateAccepts(make([]health.Accept, 1000)); err == nil || len(err.Error()) > 1<<16 {
		t.Errorf("a thousand are no error, or a long one: %v", err)
	}
}

// hosted is a host that changes, with an Evaluator and a clock.
type hosted struct {
	evaluator *health.Evaluator
	config    health.Config
	at        time.Time
	snapshot  *state.Snapshot
	found     map[string][]health.Finding
}

func newHosted(past health.History, accept ...health.Accept) *hosted {
	h := &hosted{at: apitest.Now(), snapshot: &state.Snapshot{Ready: true}, found: make(map[string][]health.Finding)}
	h.config = health.Config{Accept: accept, Now: func() time.Time { return h.at }}
	h.evaluator = health.NewFinder(h.config, past, func(d *state.DeviceState) []health.Finding { return h.found[d.Name] })
	return h
}

// has gives a device these findings from now on.
func (h *hosted) has(device string, findings ...health.Finding) *hosted {
	h.found[device] = append([]health.Finding{}, findings...)
	devices := []state.DeviceState{apitest.Device(device, 4)}
	for _, d := range cmp.Or(h.snapshot, new(state.Snapshot)).Devices {
		if d.Name != device {
			devices = append(devices, d)
		}
	}
	h.snapshot = &state.Snapshot{Ready: true, Devices: devices}
	return h
}

func (h *hosted) after(d time.Duration) *health.Host {
	h.at = h.at.Add(d)
	return h.evaluator.Evaluate(h.snapshot)
}

func port(n string) health.Finding {
	return health.Finding{Kind: health.FindingPortDown, Severity: health.SeverityWarning, Subject: "port " + n, Message: "Port " + n + " is down."}
}

func broken(contract string) health.Finding {
	return health.Finding{Kind: health.FindingContract, Severity: health.SeverityCritical, Subject: contract, Message: "Broken."}
}

func TestAccepted(t *testing.T) {
	h := newHosted(health.History{}, health.Accept{Finding: health.FindingContract, Contract: "notify_any", Device: "mlx5_[01]", Reason: "known", Until: "2026-03-31"}).
		has("mlx5_0", broken("notify_any")).has("mlx5_1", broken("notify_any"), port("1")).has("mlx5_10", broken("notify_any"))
	host := h.after(0)
	want := &health.Acceptance{Reason: "known", Until: time.Date(2026, time.March, 31, 23, 59, 59, 0, time.UTC)}
	var got []string
	for _, d := range host.Devices {
		is, headline := d.At(h.at)
		got = append(got, d.State.Name+" "+string(is)+": "+headline)
		for _, f := range d.Findings {
			accepted := ""
			if f.Accepted != nil {
				accepted = " accepted"
				if !reflect.DeepEqual(f.Accepted, want) {
					t.Errorf("accepted: %+v", f.Accepted)
				}
			}
			got = append(got, "- "+string(f.Kind)+accepted)
		}
	}
	if all := []string{
		"mlx5_10 critical: Broken.", "- contract_violated",
		"mlx5_1 warning: Port 1 is down.", "- port_down", "- contract_violated accepted",
		"mlx5_0 ok: No action needed. Accepted: 1 finding.", "- contract_violated accepted",
	}; !reflect.DeepEqual(got, all) {
		t.Errorf("got %q", got)
	}
	if len(host.Issues) != 2 || len(host.Issues[0].Places) != 1 || host.Findings != nil || !host.Fails(health.SeverityCritical, h.at) {
		t.Errorf("troubles %+v, findings %+v", host.Issues, host.Findings)
	}
	if h.has("mlx5_10").has("mlx5_1", broken("notify_any")); h.after(time.Minute).Fails(health.SeverityWarning, h.at) || h.after(0).At(h.at) != health.OK {
		t.Error("what is accepted fails")
	}
}

func TestAcceptanceEnds(t *testing.T) {
	h := newHosted(health.History{}, health.Accept{Finding: health.FindingPortDown, Reason: "spare", Until: "2026-03-01"}).has("a", port("1"))
	if host := h.after(12*time.Hour - time.Second); host.At(h.at) != health.OK || host.Findings != nil {
		t.Errorf("on the last day it is %s, with %+v", host.At(h.at), host.Findings)
	}
	host := h.after(time.Second)
	if host.At(h.at) != health.Warning || host.Devices[0].Findings[0].Accepted != nil {
		t.Errorf("on the next day it is %s", host.At(h.at))
	}
	if len(host.Findings) != 1 || host.Findings[0].Kind != health.FindingAcceptanceUnused || host.Findings[0].Severity != health.SeverityInfo ||
		!strings.Contains(host.Findings[0].Message, "expired on 2026-03-01") || !strings.Contains(host.Findings[0].Message, "spare") {
		t.Errorf("findings of the host %+v", host.Findings)
	}
	if first := host.Devices[0].Findings[0].Since; !first.Equal(apitest.Now().Add(12*time.Hour - time.Second)) {
		t.Errorf("the finding is since %s", first)
	}
}

// TestAcceptanceOfAConsequence verifies that an acceptance that matches a consequence is not unused.
func TestAcceptanceOfAConsequence(t *testing.T) {
	hangs := health.Finding{
		Kind: health.FindingStuck, Severity: health.SeverityCritical, Subject: "pid 7", Message: "Stuck.", Consequences: []health.Finding{broken("notify_any")},
	}
	h := newHosted(health.History{}, health.Accept{Finding: health.FindingContract, Contract: "notify_any", Reason: "x"}).has("a", hangs)
	h.snapshot.Ready = true
	host := h.after(time.Hour)
	if len(host.Findings) > 0 || host.At(h.at) != health.Critical {
		t.Errorf("it is %s, with %+v", host.At(h.at), host.Findings)
	}
}

// TestAcceptanceUnused verifies that an acceptance is unused once everything is known, and not while a finding may be
// flapping.
func TestAcceptanceUnused(t *testing.T) {
	unused := func(host *health.Host) (subjects []string) {
		for _, f := range host.Findings {
			subjects = append(subjects, f.Subject)
		}
		return subjects
	}
	h := newHosted(health.History{},
		health.Accept{Finding: health.FindingPortDown, Device: "a", Reason: "x"},
		health.Accept{Finding: health.FindingContract, Contract: "notify_any", Reason: "x"},
		health.Accept{Finding: health.FindingLeaked, Subject: "qp", Reason: "x"},
		health.Accept{Finding: health.FindingBandwidthLow, Device: "a", Reason: "x"},
	)
	h.has("a", port("1"))
	d := &h.snapshot.Devices[0]
	d.Contracts, d.Resources = nil, nil
	d.Bandwidth = &state.BandwidthState{Result: state.BandwidthInUse}
	if got := unused(h.after(0)); got != nil {
		t.Errorf("before the contracts were checked, the inventory taken and the bandwidth measured: %q", got)
	}
	h.has("a", port("1"))
	if got, want := unused(h.after(0)), []string{"contract_violated/notify_any", "leaked/qp"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	h.has("a", broken("notify_any"))
	if got, want := unused(h.after(9*time.Minute)), []string{"leaked/qp"}; !reflect.DeepEqual(got, want) {
		t.Errorf("gone for a while: got %q, want %q", got, want)
	}
	h.has("a", broken("notify_any"))
	if got, want := unused(h.after(time.Minute)), []string{"port_down on a", "leaked/qp"}; !reflect.DeepEqual(got, want) {
		t.Errorf("gone for good: got %q, want %q", got, want)
	}
	h.has("a", broken("notify_any"))
	h.snapshot.Devices[0].Bandwidth = &state.BandwidthState{Measured: new(state.Bandwidth)}
	if got, want := unused(h.after(0)), []string{"port_down on a", "leaked/qp", "bandwidth_low on a"}; !reflect.DeepEqual(got, want) {
		t.Errorf("measured: got %q, want %q", got, want)
	}
}

func TestConfigure(t *testing.T) {
	h := newHosted(health.History{}).has("a", port("1"))
	before := h.after(0)
	c := h.config
	c.Accept = []health.Accept{{Finding: health.FindingPortDown, Reason: "spare"}}
	h.evaluator.Configure(c)
	after := h.after(time.Hour)
	if before.At(h.at) != health.Warning || after.At(h.at) != health.OK {
		t.Errorf("before %s, after %s", before.At(h.at), after.At(h.at))
	}
	if f := after.Devices[0].Findings[0]; !f.Since.Equal(apitest.Now()) || !f.LastSeen.Equal(h.at) {
		t.Errorf("since %s, last seen %s", f.Since, f.LastSeen)
	}
	strict := health.Default()
	strict.QPErrors = 1 << 20
	evaluator := newEvaluator()
	s := &state.Snapshot{Devices: []state.DeviceState{*trouble()}}
	has := func() (found bool) {
		for _, f := range evaluator.Evaluate(s).Devices[0].Findings {
			found = found || f.Kind == health.FindingQPError
		}
		return found
	}
	if !has() {
		t.Fatal("there are no queue pairs in error")
	}
	if evaluator.Configure(strict); has() {
		t.Error("the threshold of before holds")
	}
}
