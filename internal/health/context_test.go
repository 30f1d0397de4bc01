package health_test

import (
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// TestContextHistories: of objects without an owner it is told whose they were when that was last seen, after a
// restart too, and what was left is remembered for a day.
func TestWitnesses(t *testing.T) {
	objects := []state.TypeCount{{Type: "qp", Objects: 3}}
	trainer := state.Owner{PID: 4711, Comm: "trainer", ContainerID: container, PodUID: pod, Objects: objects, Contexts: []uint32{5, 6}}
	look := func(evaluator *health.Evaluator, after time.Duration, i state.Inventory, leaked ...state.LeakedBy) *health.Device {
		i.Index, i.PIDsVisible = 1, true
		d := device(i)
		d.Resources.Taken = taken().Add(after)
		d.Resources.OrphanedSince, d.Resources.LeakedBy = taken().Add(-time.Hour), leaked
		return evaluator.Evaluate(&state.Snapshot{Ready: true, Devices: []state.DeviceState{*d}}).Devices[0]
	}
	says := func(d *health.Device) string {
		var all []string
		for _, f := range flat(d.Findings) {
			all = append(all, f.Message)
		}
		return strings.Join(all, " ")
	}
	orphaned := state.Inventory{Ownerless: objects, Orphans: []state.Orphan{{Context: 5, Objects: objects}, {Context: 9, Objects: []state.TypeCount{{Type: "pd", Objects: 1}}}}}

	evaluator := newEvaluator()
	if d := look(evaluator, 0, state.Inventory{Owners: []state.Owner{trainer}}); len(d.Leftover) != 0 {
		t.Errorf("left of what is in use: %+v", d.Leftover)
	}
	look(evaluator, time.Minute, state.Inventory{Owners: []state.Owner{trainer}})
	evaluator = health.New(health.Default(), evaluator.History())
	d := look(evaluator, 2*time.Minute, orphaned)
	if len(d.Leftover) != 2 || d.Leftover[0].PID != 4711 || d.Leftover[0].PodUID != pod || !d.Leftover[0].First.Equal(taken()) || !d.Leftover[0].Last.Equal(taken().Add(time.Minute)) ||
		!d.Leftover[0].LeftFirst.Equal(taken().Add(2*time.Minute)) || d.Leftover[1].PID != 0 || !d.Leftover[1].First.IsZero() {
		t.Errorf("left: %+v", d.Leftover)
	}
	const want = "They belonged to pid 4711 (trainer), container 3f2a1b2c3d4e, pod 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0, seen from 2026-03-01 12:00:00 UTC to 2026-03-01 12:01:00 UTC (3 qp)."
	if got := says(d); !strings.Contains(got, want) {
		t.Errorf("the findings say %s", got)
	}
	d = look(evaluator, time.Hour, state.Inventory{})
	if len(d.Leftover) != 2 || !d.Leftover[0].LeftLast.Equal(taken().Add(2*time.Minute)) || strings.Contains(says(d), "They belonged to") {
		t.Errorf("gone: %+v; %s", d.Leftover, says(d))
	}
	// The context has a new owner.
	again := trainer
	again.PID, again.Contexts = 4712, []uint32{5}
	if d := look(evaluator, 2*time.Hour, state.Inventory{Owners: []state.Owner{again}}); len(d.Leftover) != 1 || d.Leftover[0].Context.ID != 9 {
		t.Errorf("in use again: %+v", d.Leftover)
	}
	if d := look(evaluator, 25*time.Hour, state.Inventory{}); len(d.Leftover) != 0 || len(evaluator.History().ContextHistories["rxe0"]) != 1 {
		t.Errorf("a day later: %+v, %+v", d.Leftover, evaluator.History().ContextHistories)
	}

	// A child of the exporter has left the objects.
	evaluator = newEvaluator()
	by := state.LeakedBy{Context: state.Context{Index: 1, ID: 5}, Kind: state.KindProbe, Started: taken(), Outcome: state.OutcomeTimeout, Verb: "ibv_destroy_cq", Objects: objects}
	d = look(evaluator, time.Minute, orphaned, by)
	if len(d.Leftover) != 2 || d.Leftover[0].Run != "probe run, timeout in ibv_destroy_cq" || strings.Contains(says(d), "They belonged to") {
		t.Errorf("left: %+v; %s", d.Leftover, says(d))
	}
	if got := says(look(evaluator, 2*time.Minute, orphaned)); !strings.Contains(got, "They belonged to a child of the exporter (probe run, timeout in ibv_destroy_cq)") {
		t.Errorf("the findings say %s", got)
	}

	// A host on which much ends is remembered to a bound, what was left first.
	var many state.Inventory
	for n := range uint32(1000) {
		many.Owners = append(many.Owners, state.Owner{PID: int(n + 1), Contexts: []uint32{100 + n}})
	}
	many.Orphans = orphaned.Orphans
	evaluator = newEvaluator()
	if d := look(evaluator, 0, many); len(d.Leftover) != 2 || len(evaluator.History().ContextHistories["rxe0"]) != health.MaxContextHistories {
		t.Errorf("%d are remembered, and %+v", len(evaluator.History().ContextHistories["rxe0"]), d.Leftover)
	}
	// Of another device of the same name nothing is known.
	other := orphaned
	evaluator = health.New(health.Default(), health.History{ContextHistories: map[string][]health.ContextHistory{"rxe0": {{Context: state.Context{Index: 2, ID: 5}, PID: 1, First: taken(), Last: taken()}}}})
	if d := look(evaluator, 0, other); d.Leftover[0].PID != 0 {
		t.Errorf("left: %+v", d.Leftover)
	}
}
