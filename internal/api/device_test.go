package api_test

import (
	"reflect"
	"testing"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// of returns the status of a host with one device.
func of(d state.DeviceState) *api.Device {
	return &api.Of(apitest.Judged(&state.Snapshot{Devices: []state.DeviceState{d}}), options()).Devices[0]
}

// changed returns a healthy device with one change.
func changed(change func(*state.DeviceState)) state.DeviceState {
	d := apitest.Device("mlx5_0", 4)
	change(&d)
	return d
}

// TestStale makes sure that each kind of run has an age of its own at which it is
// stale, and none if nothing is said of it.
func TestStale(t *testing.T) {
	d := changed(func(d *state.DeviceState) {
		d.Last.Started = apitest.Now().Add(-11 * time.Minute)
		d.Contracts.Last.Started = apitest.Now().Add(-11 * time.Minute)
		d.Resources.Last.Started = apitest.Now().Add(-11 * time.Minute)
	})
	if got := of(d); !got.Run.Stale || got.Contracts.Run.Stale || !got.Resources.Run.Stale {
		t.Errorf("stale: %t, %t, %t", got.Run.Stale, got.Contracts.Run.Stale, got.Resources.Run.Stale)
	}
	s := api.Of(health.New(health.Default(), health.Past{}).Of(&state.Snapshot{Devices: []state.DeviceState{d}}), options())
	if got := s.Devices[0]; got.Run.Stale || got.Health != api.HealthOK {
		t.Errorf("stale without a limit: %+v", got.Run)
	}
}

func TestLatencies(t *testing.T) {
	bins := func(from, to time.Duration, samples int) state.Bin {
		return state.Bin{From: from, To: to, Samples: samples}
	}
	d := changed(func(d *state.DeviceState) {
		d.Last.Probes = []state.Probe{{Latencies: []state.Latency{
			{Port: 1, Path: state.PathFlush, Mode: state.ModePoll, Count: 3, P50: 5, P99: 9, Bins: []state.Bin{bins(4, 16, 3)}},
			{
				Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Count: 98, Vector: 0, P50: 1, P99: 2, Missed: 1, Missing: 2,
				Bins: []state.Bin{bins(100, 400, 98)},
			},
			{
				Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Count: 2, Vector: 1, Missed: 3, Spurious: 4, Misdirected: 5, Unsuccessful: []string{"a", "b"},
				Bins: []state.Bin{bins(400, 1600, 2), bins(400, 1600, -7), bins(5, 5, 3)},
			},
			{Port: 2, Path: state.PathFlush, Mode: state.ModeAny},
			{Port: 1, Path: "psychic", Mode: state.ModeAny},
		}}}
	})
	want := []api.Latency{
		{
			Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Samples: 100, P50: 200e-9, P99: 800e-9,
			Distribution: []api.Bin{{From: 100e-9, To: 400e-9, Samples: 98}, {From: 400e-9, To: 1600e-9, Samples: 2}},
			Missed:       4, Spurious: 4, Misdirected: 5, Missing: 2, Unsuccessful: 2,
		},
		{
			Port: 1, Path: state.PathFlush, Mode: state.ModePoll, Samples: 3, P50: 5e-9, P99: 9e-9,
			Distribution: []api.Bin{{From: 4e-9, To: 16e-9, Samples: 3}},
		},
		{Port: 2, Path: state.PathFlush, Mode: state.ModeAny},
	}
	got := of(d).Latencies
	for i := range got { // square roots
		got[i].P50, got[i].P99 = round(got[i].P50), round(got[i].P99)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func round(seconds float64) float64 { return float64(int(seconds*1e9+0.5)) / 1e9 }

func TestSizes(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	d := changed(func(d *state.DeviceState) {
		d.Last.Probes = []state.Probe{{
			CQs:  []state.CQSize{{Profile: "small", Requested: 4, Actual: 7}},
			SRQs: []state.SRQSize{{Profile: "small", Requested: state.SRQAttr{WorkRequests: 1, ScatterGather: 2}, Actual: state.SRQAttr{WorkRequests: 3, ScatterGather: 4}, Queried: &state.SRQAttr{WorkRequests: 5, ScatterGather: 6}}},
			QPs: []state.QPSize{{
				Type: "rc", Profile: "small",
				Requested: state.QPCap{SendWorkRequests: 1, RecvWorkRequests: 2, SendScatterGather: 3, RecvScatterGather: 4, InlineBytes: 5},
				Actual:    state.QPCap{SendWorkRequests: 6, RecvWorkRequests: 7, SendScatterGather: 8, RecvScatterGather: 9, InlineBytes: 10},
			}},
			Clamps: []state.Clamp{
				{Profile: "small", Subject: "cq", Attribute: "cqe", Limit: "max_cqe", Configured: 100, Used: 4},
				{Profile: "small", Subject: "srq", Attribute: "max_sge", Limit: "max_srq_sge", Configured: 101, Used: 2},
				{Profile: "small", Subject: "qp_rc", Attribute: "max_recv_sge", Limit: "max_sge", Configured: 102, Used: 4},
				{Profile: "small", Subject: "qp_rc", Attribute: "max_inline_data", Limit: "max_inline_data", Configured: 103, Used: 5},
				{Profile: "large", Subject: "qp_rc", Attribute: "max_send_wr", Limit: "max_qp_wr", Configured: 104, Used: 5},
			},
		}}
	})
	want := []api.Size{
		{Object: "cq", Profile: "small", Attribute: "entries", Configured: number(100), LimitName: "max_cqe", Requested: 4, Actual: 7},
		{Object: "srq", Profile: "small", Attribute: "work_requests", Requested: 1, Actual: 3, Queried: number(5)},
		{Object: "srq", Profile: "small", Attribute: "scatter_gather_entries", Configured: number(101), LimitName: "max_srq_sge", Requested: 2, Actual: 4, Queried: number(6)},
		{Object: "qp_rc", Profile: "small", Attribute: "send_work_requests", Requested: 1, Actual: 6},
		{Object: "qp_rc", Profile: "small", Attribute: "recv_work_requests", Requested: 2, Actual: 7},
		{Object: "qp_rc", Profile: "small", Attribute: "send_scatter_gather_entries", Requested: 3, Actual: 8},
		{Object: "qp_rc", Profile: "small", Attribute: "recv_scatter_gather_entries", Configured: number(102), LimitName: "max_sge", Requested: 4, Actual: 9},
		{Object: "qp_rc", Profile: "small", Attribute: "inline_bytes", Configured: number(103), LimitName: "max_inline_data", Requested: 5, Actual: 10},
	}
	if got := of(d).Sizes; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// A size is known for all that is odd about it, by contracts of its own kind that the
// driver breaks.
func TestKnownSizes(t *testing.T) {
	known := func(verdict state.Verdict, contracts ...string) []state.Contract {
		var all []state.Contract
		for _, name := range contracts {
			all = append(all, state.Contract{Name: name, Verdict: verdict, Known: true, Fact: "f", Source: "s"})
		}
		return all
	}
	const less, other = "srq_at_least_requested", "srq_reports_actual"
	for _, tc := range []struct {
		name     string
		verdicts []state.Contract
		want     []string
	}{
		{"nothing", nil, nil},
		{"a CQ of less", known(state.VerdictViolated, "cq_at_least_requested"), []string{"cq small entries"}},
		{"a contract that holds", known(state.VerdictHolds, "cq_at_least_requested"), nil},
		{"another kind", known(state.VerdictViolated, "qp_at_least_requested", "cq_reports_actual"), nil},
		{"half of it", known(state.VerdictViolated, less), nil},
		{"the other half", known(state.VerdictViolated, other), nil},
		{"both", known(state.VerdictViolated, less, other), []string{"srq small work_requests"}},
		{"both, of which one holds", append(known(state.VerdictViolated, less), known(state.VerdictHolds, other)...), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := changed(func(d *state.DeviceState) {
				d.Contracts = &state.Contracts{Verdicts: tc.verdicts}
				d.Last.Probes = []state.Probe{{
					CQs: []state.CQSize{{Profile: "small", Requested: 16, Actual: 15}, {Profile: "medium", Requested: 16, Actual: 16}, {Profile: "large", Requested: 16, Actual: 31}},
					SRQs: []state.SRQSize{{
						Profile: "small", Requested: state.SRQAttr{WorkRequests: 8, ScatterGather: 1},
						Actual: state.SRQAttr{WorkRequests: 7, ScatterGather: 1}, Queried: &state.SRQAttr{WorkRequests: 6, ScatterGather: 1},
					}},
				}}
			})
			var got []string
			for _, s := range of(d).Sizes {
				if s.Known {
					got = append(got, s.Object+" "+s.Profile+" "+s.Attribute)
				}
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// What a driver is known for is told once for each fact.
func TestKnown(t *testing.T) {
	short := func(contract, fact string) state.KnownShortfall {
		return state.KnownShortfall{Subject: "rc small", Message: "16 asked for, 15 given", Contract: contract, Fact: fact, Source: "s"}
	}
	d := changed(func(d *state.DeviceState) {
		d.Contracts = &state.Contracts{Verdicts: []state.Contract{
			{Name: "held", Verdict: state.VerdictHolds, Known: true, Fact: "1"},
			{Name: "broken", Verdict: state.VerdictViolated, Known: true, Fact: "1"},
			{Name: "unheard of", Verdict: state.VerdictViolated},
		}}
		d.Last.Probes = []state.Probe{{Known: []state.KnownShortfall{short("broken", "1"), short("broken", "2"), short("other", "1"), short("other", "1")}}}
	})
	var got []string
	for _, k := range of(d).Known {
		got = append(got, k.Contract+" "+k.Fact)
	}
	if want := []string{"broken 1", "held 1", "broken 2", "other 1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What came of sending inline data is told of the type and the size that were sent.
func TestMaxInline(t *testing.T) {
	d := changed(func(d *state.DeviceState) {
		d.Last.Probes = []state.Probe{{
			Inline: []state.InlineMax{{Type: "rc", Bytes: 100}, {Type: "uc", Bytes: 100}, {Type: "ud", Bytes: 100}, {Type: "srd", Bytes: 100}},
			InlineSends: []state.InlineSend{
				{Type: "rc", Bytes: 100, Result: state.InlineSent},
				{Type: "uc", Bytes: 100, Result: state.InlineFailed, Detail: "EINVAL"},
				{Type: "ud", Bytes: 99, Result: state.InlineSent},
				{Type: "srd", Bytes: 100, Result: state.InlineUntried, Detail: "no port"},
			},
		}}
	})
	want := map[string]string{"rc": "sent", "uc": "accepted, and cannot be sent", "ud": "accepted, not tried", "srd": "accepted, not tried: no port"}
	got := make(map[string]string)
	for _, m := range of(d).MaxInline {
		got[m.Type] = m.Meaning()
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestVectors(t *testing.T) {
	vector := func(n, count int, p50 time.Duration, wrong int) state.VectorLatency {
		return state.VectorLatency{Measured: apitest.Now(), Latency: state.Latency{
			Port: 1, Path: state.PathFlush, Vector: n, Count: count, P50: p50, P99: 2 * p50,
			Missed: wrong, Spurious: wrong, Misdirected: wrong, Missing: wrong, Unsuccessful: make([]string, wrong),
		}}
	}
	d := changed(func(d *state.DeviceState) {
		d.Notification = &state.Notification{Vectors: []state.VectorLatency{
			vector(2, 5, 100*time.Microsecond, 0), vector(0, 5, 10*time.Microsecond, 0), vector(1, 0, 0, 2), vector(3, 5, 11*time.Microsecond, 0),
		}}
	})
	want := api.Vector{
		Number: 2, Port: 1, Path: state.PathFlush, Samples: 5, P50: 100e-6, P99: 200e-6, Usual: 11e-6, Slow: true, Measured: apitest.Now(),
	}
	got := of(d).Vectors
	if len(got) != 4 || got[2] != want || got[1].Wrong != 10 || got[0].Slow || got[0].Number != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestContracts(t *testing.T) {
	verdict := func(name string, v state.Verdict, s state.Severity) state.Contract {
		return state.Contract{Name: name, Verdict: v, Severity: s}
	}
	d := changed(func(d *state.DeviceState) {
		d.Contracts = &state.Contracts{Verdicts: []state.Contract{
			verdict("a", state.VerdictHolds, state.SeverityInfo), verdict("b", state.VerdictSkipped, state.SeverityCritical),
			verdict("c", state.VerdictViolated, state.SeverityInfo), verdict("d", state.VerdictHolds, state.SeverityCritical),
			verdict("e", state.VerdictViolated, state.SeverityCritical), verdict("f", state.VerdictSkipped, state.SeverityInfo),
			verdict("g", "perhaps", state.SeverityCritical), verdict("h", state.VerdictViolated, "dire"),
		}}
	})
	got := of(d).Contracts
	order := ""
	for _, v := range got.Verdicts {
		order += v.Name
	}
	if order != "ehcbfad" || got.Holds != 2 || got.Violated != 3 || got.Skipped != 2 || got.Run != nil {
		t.Errorf("got %s: %+v", order, got)
	}
}

func TestResources(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	d := changed(func(d *state.DeviceState) {
		d.Info.Limits = []state.Limit{{Name: "max_qp", Value: 100}, {Name: "max_cq", Value: 0}}
		i := d.Resources.Inventory
		i.Objects = []state.ObjectCount{
			{Type: "qp", Owner: state.OwnerUser, Objects: 10},
			{Type: "qp", Owner: state.OwnerKernel, Objects: 2},
			{Type: "mr", Owner: state.OwnerUnknown, Objects: 9},
			{Type: "cq", Owner: state.OwnerUser, Objects: 4},
			{Type: "cq", Owner: state.OwnerKernel, Objects: 1<<63 - 1},
		}
		i.Ownerless = []state.TypeCount{{Type: "qp", Objects: 3}, {Type: "cm_id", Objects: 1}}
		i.Untraced = []state.TypeCount{{Type: "qp", Objects: 1}}
		i.Others = []state.TypeCount{{Type: "qp", Objects: 5}}
		i.Incomplete = []state.Incomplete{{Type: "mr", Reason: state.IncompleteMaxObjects, Detail: "9, 1 allowed"}, {Type: "cq", Reason: state.IncompleteInterrupted}}
		i.Owners = []state.Owner{
			{PID: 3, Objects: []state.TypeCount{{Type: "qp", Objects: 1}}},
			{PID: 2, Objects: []state.TypeCount{{Type: "qp", Objects: 1}, {Type: "cq", Objects: 4}}, Memlock: &state.Memlock{Pinned: 1, Locked: 2, Limit: -1}},
			{PID: 1, Objects: []state.TypeCount{{Type: "qp", Objects: 1}}, Memlock: &state.Memlock{Limit: 0}},
		}
		d.Resources.Leaked = []state.Leaked{{Type: "qp", Objects: 2}}
	})
	got := of(d).Resources
	types := make(map[string]api.Type)
	for _, one := range got.Types {
		types[one.Type] = one
	}
	for kind, want := range map[string]api.Type{
		"qp":    {Objects: 12, User: 10, Kernel: 2, Limit: number(100), Orphaned: number(3), Leaked: 2, Others: 5, Unowned: 4},
		"mr":    {Objects: 9, Unknown: 9, Incomplete: state.IncompleteMaxObjects, IncompleteDetail: "9, 1 allowed"},
		"cq":    {Objects: 1<<63 - 1, User: 4, Kernel: 1<<63 - 1, Orphaned: number(0), Incomplete: state.IncompleteInterrupted},
		"cm_id": {Unowned: 1},
		"pd":    {Orphaned: number(0)},
	} {
		want.Type = kind
		if !reflect.DeepEqual(types[kind], want) {
			t.Errorf("%s: got %+v\nwant %+v", kind, types[kind], want)
		}
	}
	var pids []int
	for _, o := range got.Owners {
		pids = append(pids, o.PID)
	}
	if !reflect.DeepEqual(pids, []int{2, 1, 3}) || got.Owners[0].Memlock.Limit != nil || *got.Owners[1].Memlock.Limit != 0 || got.Owners[2].Memlock != nil {
		t.Errorf("owners %+v", got.Owners)
	}
	if c := got.Cgroups; len(c) != 2 || *c[0].Limit != 100 || c[1].Limit != nil {
		t.Errorf("cgroups %+v", c)
	}

	if got.PIDsVisible == nil || !*got.PIDsVisible {
		t.Error("the processes are not visible")
	}
	d.Resources.Inventory.PIDsVisible = false
	if v := of(d).Resources.PIDsVisible; v == nil || *v {
		t.Error("the processes are visible")
	}
	for _, one := range of(d).Resources.Types {
		if one.Orphaned != nil {
			t.Errorf("%s: orphans of owners that cannot be seen", one.Type)
		}
	}
	d.Resources.Inventory = nil
	if got := of(d).Resources; len(got.Types) != 1 || got.Types[0].Leaked != 2 || !got.Taken.IsZero() || got.PIDsVisible != nil {
		t.Errorf("without an inventory: %+v", got)
	}
}
