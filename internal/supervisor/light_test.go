package supervisor

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/state"
)

const lightLine = `{"light":{"reason":"busy","detail":"mpirun (process 7) holds queue pairs"}}` + "\n"

// light is a child that leaves the device alone.
func light(s script) script {
	s.output = lightLine + s.output
	return s
}

// TestPutOff: a contract run that is due waits for a run of the probes that is not light,
// whether the probes know of that first or the contract run itself, and is told of meanwhile.
func TestPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := func(n int) bool { return n < 2 || n >= 4 && n < 121 }
		b := newContractBench(t, func(_ string, n int) script {
			if busy(n) {
				return light(scriptOK(time.Second))
			}
			return scriptOK(time.Second)
		}, contractsOnly(
			judged(time.Second, "x", "holds"),
			light(script{output: `{"end":{}}` + "\n", takes: time.Second}),
			judged(time.Second, "x", "violated"),
		), nil, "a")
		contracts := func() *state.Contracts { return stateOf(b.t, b.Snapshot(), "a").Contracts }
		putOff := func() bool {
			c := contracts()
			return c != nil && c.PutOff != nil && c.PutOff.Detail == "mpirun (process 7) holds queue pairs"
		}
		b.start()

		b.after(90 * time.Second)
		if !putOff() || contracts().Last != nil || len(b.kids.startsOf(judgingOf("a"))) != 0 {
			t.Errorf("busy from the start: %+v after %v", contracts(), b.kids.startsOf(judgingOf("a")))
		}
		// The third run is not light.
		b.after(time.Minute)
		if got := b.verdicts("a"); putOff() || !slices.Equal(got, []string{"x", "holds"}) {
			t.Errorf("idle: %q, put off %t", got, putOff())
		}
		judgedAt := contracts().Last.Started
		// Runs are light again, which is nothing to a contract run that is not due.
		b.after(10 * time.Minute)
		if putOff() || stateOf(t, b.Snapshot(), "a").Last.Light == nil {
			t.Error("put off though it is not due")
		}
		// It is due after an hour, sees for itself, and waits.
		b.after(80 * time.Minute)
		if got := b.verdicts("a"); !putOff() || !slices.Equal(got, []string{"x", "holds"}) || len(b.kids.startsOf(judgingOf("a"))) != 2 {
			t.Errorf("busy when it is due: %q, put off %t, contract runs at %v", got, putOff(), b.kids.startsOf(judgingOf("a")))
		}
		if last := contracts().Last; last == nil || !last.Started.Equal(judgedAt) || last.Light != nil {
			t.Errorf("the last contract run is %+v", last)
		}
		b.after(40 * time.Minute)
		if got := b.verdicts("a"); putOff() || !slices.Equal(got, []string{"x", "violated"}) || len(b.kids.startsOf(judgingOf("a"))) != 3 {
			t.Errorf("idle again: %q, put off %t, contract runs at %v", got, putOff(), b.kids.startsOf(judgingOf("a")))
		}
		b.end()
		for message, times := range map[string]int{"Device left alone": 2, "Device is probed in full again": 2, "mpirun (process 7)": 2} {
			if got := b.logs(message); got != times {
				t.Errorf("%q was logged %d times, want %d:\n%s", message, got, times, b.log.String())
			}
		}
	})
}

// TestPutOffInMidst: a contract run whose first child crashed is put off if the device is in
// use by then, and keeps the verdicts that there are.
func TestPutOffInMidst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newContractBench(t, func(_ string, n int) script {
			if n == 1 {
				return light(scriptOK(time.Second))
			}
			return scriptOK(time.Second)
		}, contractsOnly(
			crashes("y", "x", "holds"),
			light(script{output: `{"end":{}}` + "\n", takes: time.Second}),
			judged(time.Second, "x", "holds", "y", "holds"),
		), nil, "a")
		b.start()
		b.after(30 * time.Second)
		c := stateOf(t, b.Snapshot(), "a").Contracts
		if got := b.verdicts("a"); c.PutOff == nil || !slices.Equal(got, []string{"x", "holds", "y", "skipped:crashed"}) {
			t.Errorf("%q, put off %v", got, c.PutOff)
		}
		b.after(2 * time.Minute)
		if got := b.verdicts("a"); !slices.Equal(got, []string{"x", "holds", "y", "holds"}) || len(b.kids.told) != 3 || b.kids.toldOf(2) != nil {
			t.Errorf("%q, told %q", got, b.kids.told)
		}
		b.end()
	})
}

// TestKeepRest: what a light run does not look at is as it was known, failures too.
func TestKeepRest(t *testing.T) {
	t.Parallel()
	before := []state.Probe{
		{
			Name: "cq", Status: state.StatusOK, CQs: []state.CQSize{{Profile: "small", Actual: 1}, {Profile: "large", Actual: 2}},
			Memory: []state.Memory{{Object: "cq", Profile: "small", Virtual: 1}, {Object: "cq", Profile: "large", Virtual: 2}},
			Clamps: []state.Clamp{{Subject: "cq", Profile: "small", Used: 1}, {Subject: "cq", Profile: "large", Used: 2}},
			Known:  []state.KnownShortfall{{Subject: "small", Message: "old"}, {Subject: "large", Message: "old"}},
		},
		{Name: "srq", Status: state.StatusSkipped, Skips: []state.Skip{{Reason: state.SkipNotSupported}}},
		{
			Name: "qp", Status: state.StatusFailed,
			QPs:      []state.QPSize{{Type: "rc", Profile: "small"}, {Type: "ud", Profile: "small"}},
			Inline:   []state.InlineMax{{Type: "rc", Bytes: 3}, {Type: "ud", Bytes: 4}},
			Skips:    []state.Skip{{Subject: "uc", Reason: state.SkipNotSupported}},
			Failures: []state.Failure{{Subject: "rc small", Message: "old"}, {Subject: "ud large", Message: "old"}, {Subject: "cq", Message: "old"}},
		},
		{Name: "notification", Status: state.StatusFailed, Failures: []state.Failure{{Subject: "x", Message: "old"}}},
	}
	run := func(failures ...state.Failure) *state.Run {
		qp := state.Probe{Name: "qp", Status: state.StatusOK, QPs: []state.QPSize{{Type: "rc", Profile: "small", Actual: state.QPCap{InlineBytes: 9}}}}
		if len(failures) > 0 {
			qp.Status, qp.QPs, qp.Failures = state.StatusFailed, nil, failures
		}
		return &state.Run{
			Info: new(state.Device), Outcome: state.OutcomeOK, Light: &state.Light{Reason: state.LightBusy, Detail: "x"},
			Probes: []state.Probe{{
				Name: "cq", Status: state.StatusOK, CQs: []state.CQSize{{Profile: "small", Actual: 5}},
				Memory: []state.Memory{{Object: "cq", Profile: "small", Virtual: 5}},
			}, qp},
		}
	}
	say := func(probes []state.Probe) (said []string) {
		for _, p := range probes {
			said = append(said, fmt.Sprintf("%s %s", p.Name, p.Status))
			for _, f := range p.Failures {
				said = append(said, fmt.Sprintf("%s failed: %s", f.Subject, f.Message))
			}
			for _, i := range p.Inline {
				said = append(said, fmt.Sprintf("%s inline %d", i.Type, i.Bytes))
			}
			if list := all(&state.Run{Probes: []state.Probe{p}}); list != "" {
				said = append(said, list)
			}
		}
		return said
	}
	r := rounds{whole: true, turn: 3, probes: before}
	kept, _ := r.take(run())
	want := []string{
		"cq ok", "cq small 5, cq large 2, cq small 5 B, cq large 2 B, cq large cut to 2, known large old",
		"srq skipped", "no ",
		"qp failed", "ud large failed: old", "rc inline 3", "ud inline 4", "rc small 9, ud small 0, no uc",
		"notification failed", "x failed: old",
	}
	if got := say(kept.Probes); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := told(r.request()); got != "nothing all" || r.turn != 3 {
		t.Errorf("after a light run the next one is told %q, of turn %d", got, r.turn)
	}
	// It failed itself.
	again, _ := r.take(run(state.Failure{Subject: "rc", Message: "new"}))
	if got := say(again.Probes); !slices.Contains(got, "rc failed: new") || !slices.Contains(got, "ud large failed: old") {
		t.Errorf("got %q", got)
	}
	// A device that cannot be opened, or not to the end, has nothing of before.
	for _, change := range []func(*state.Run){
		func(r *state.Run) { r.Outcome, r.Info = state.OutcomeFailed, nil },
		func(r *state.Run) { r.Outcome = state.OutcomeTimeout },
		func(r *state.Run) { r.Outcome = state.OutcomeCrashed },
	} {
		broken := run()
		change(broken)
		if kept, _ := r.take(broken); len(kept.Probes) != 2 {
			t.Errorf("kept %q of a run that was %s", say(kept.Probes), broken.Outcome)
		}
	}
}
