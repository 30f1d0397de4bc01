package health_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// exhausting is a device that refuses queue pairs, with an Evaluator.
type exhausting struct {
	t         *testing.T
	evaluator *health.Evaluator
	dev       state.DeviceState
}

func newExhausting(t *testing.T, past health.History) *exhausting {
	dev := *device(state.Inventory{}, state.Limit{Name: "max_qp", Value: 262144})
	dev.Info.Firmware = "22.39"
	return &exhausting{t: t, evaluator: health.New(health.Default(), past), dev: dev}
}

// run adds a probe run that was refused at a number of queue pairs. Zero means it was not.
func (e *exhausting) run(after time.Duration, objects int64) {
	e.dev.Last = &state.Run{Kind: state.KindProbe, Started: taken().Add(after), Outcome: state.OutcomeOK, Info: e.dev.Info}
	if objects > 0 {
		e.dev.Last.Refused = []state.Refused{{Type: "qp", Verb: "ibv_create_qp", Errno: "ENOMEM", Objects: objects}}
	}
}

// inventory is an inventory at a moment.
func (e *exhausting) inventory(after time.Duration, objects int64) {
	r := *e.dev.Resources
	r.Taken = taken().Add(after)
	r.Inventory = &state.Inventory{Objects: []state.ObjectCount{{Type: "qp", Owner: state.OwnerUser, Objects: objects}}}
	e.dev.Resources = &r
}

// want compares the number of objects at the refusal and the finding. Zero means that none applies.
func (e *exhausting) want(what string, objects int64, severity health.Severity, says string) {
	e.t.Helper()
	d := e.evaluator.Evaluate(&state.Snapshot{Ready: true, Devices: []state.DeviceState{e.dev}}).Devices[0]
	got := int64(0)
	for _, x := range d.Exhausted {
		got += x.Objects
	}
	if got != objects {
		e.t.Errorf("%s: exhausted at %d, want %d", what, got, objects)
	}
	var found health.Finding
	for _, f := range flat(d.Findings) {
		if f.Kind == health.FindingExhausted {
			found = f
		}
	}
	if found.Severity != severity || !strings.Contains(found.Message, says) {
		e.t.Errorf("%s: severity %q, want %q: %s", what, found.Severity, severity, found.Message)
	}
}

func TestExhausted(t *testing.T) {
	e := newExhausting(t, health.History{})
	e.run(0, 0)
	e.inventory(0, 3000)
	e.want("nothing is refused", 0, "", "")
	e.run(time.Minute, 4000)
	e.want("refused", 4000, health.SeverityCritical, "refused ibv_create_qp with ENOMEM, while the kernel counted 4000 queue pairs; it claims 262,144 (max_qp). Now there are 3000.")
	e.run(2*time.Minute, 3900)
	e.want("refused again", 3900, health.SeverityCritical, "3900")
	e.run(3*time.Minute, 0)
	e.inventory(3*time.Minute, 3500)
	e.want("near", 3900, health.SeverityWarning, "Now there are 3500.")
	e.inventory(4*time.Minute, 10)
	e.want("far away", 3900, health.SeverityInfo, "Now there are 10.")
	e.run(25*time.Hour, 0)
	e.want("a day later", 3900, "", "")
	e.inventory(26*time.Hour, 3899)
	e.want("near again", 3900, health.SeverityWarning, "")
	kept := e.evaluator.History()
	e.inventory(27*time.Hour, 3901)
	e.want("there are more", 0, "", "")
	e.inventory(28*time.Hour, 3899)
	e.want("as many again", 0, "", "")

	e = newExhausting(t, kept)
	e.run(28*time.Hour, 0)
	e.inventory(28*time.Hour, 3899)
	e.want("after a restart", 3900, health.SeverityWarning, "")
	e.dev.Info = &state.Device{Firmware: "22.40", Limits: e.dev.Info.Limits}
	e.run(29*time.Hour, 0)
	e.want("of another firmware", 0, "", "")
	if past := e.evaluator.History(); reflect.DeepEqual(past.Exhausted, kept.Exhausted) || len(kept.Exhausted["rxe0"]) != 1 {
		t.Errorf("kept %v, and then %v", kept.Exhausted, past.Exhausted)
	}
}

// TestExhaustedOfAnotherAdapter verifies that a refusal does not apply to another adapter with the same name and
// firmware.
func TestExhaustedOfAnotherAdapter(t *testing.T) {
	const guid, other = "5254:00ff:fe12:3456", "5254:00ff:fe12:9999"
	e := newExhausting(t, health.History{})
	e.dev.Info.NodeGUID = guid
	e.run(0, 4000)
	e.want("refused", 4000, health.SeverityCritical, "4000")
	unknown := *e.dev.Info
	unknown.NodeGUID = ""
	kept := e.evaluator.History()
	for _, tc := range []struct {
		what string
		info state.Device
		want int64
	}{
		{"the same", *e.dev.Info, 4000},
		{"one that does not say which", unknown, 4000},
		{"another", state.Device{Firmware: "22.39", NodeGUID: other, Limits: unknown.Limits}, 0},
	} {
		e := newExhausting(t, kept)
		e.dev.Info = &tc.info
		e.run(time.Minute, 0)
		severity := health.SeverityInfo
		if tc.want == 0 {
			severity = ""
		}
		e.want(tc.what, tc.want, severity, "")
	}
}

func TestExhaustedForAWhile(t *testing.T) {
	e := newExhausting(t, health.History{})
	e.run(0, 1)
	e.inventory(time.Minute, 1)
	e.want("refused", 1, health.SeverityCritical, "1 queue pair")
	e.run(2*time.Minute, 0)
	e.dev.Last.Reduced = &state.Reduced{}
	e.want("a run that creates hardly anything", 1, health.SeverityWarning, "")
	e.run(3*time.Minute, 0)
	e.want("given again", 0, "", "")
	e.inventory(4*time.Minute, 1)
	e.want("later", 0, "", "")
}

func TestExhaustedByContracts(t *testing.T) {
	e := newExhausting(t, health.History{})
	e.run(0, 0)
	e.dev.Contracts = &state.Contracts{Last: &state.Run{Started: taken().Add(time.Minute), Outcome: state.OutcomeOK, Refused: []state.Refused{
		{Type: "qp", Verb: "ibv_create_qp", Errno: "EAGAIN", Objects: 50},
	}}}
	e.want("refused", 50, health.SeverityCritical, "EAGAIN")
	e.dev.Info = &state.Device{Firmware: "22.40"}
	e.run(2*time.Minute, 0)
	e.want("of another firmware", 0, "", "")
	e.run(3*time.Minute, 0)
	e.want("later", 0, "", "")
}
