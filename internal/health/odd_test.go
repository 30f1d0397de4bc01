package health_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// hold verifies what is always true: equal states have equal findings, complete, printable, in order and within the
// limits, and the state is not modified.
func hold(t *testing.T, s *state.DeviceState, thresholds health.Config) {
	t.Helper()
	before, err := json.Marshal(s)
	if err != nil {
		t.Skip("a time that JSON does not have")
	}
	got := health.Assess(s, thresholds, health.History{})
	if again := health.Assess(s, thresholds, health.History{}); !reflect.DeepEqual(got, again) {
		t.Fatalf("got %+v and then %+v", got, again)
	}
	if after, _ := json.Marshal(s); string(after) != string(before) {
		t.Fatalf("the state was changed from %s to %s", before, after)
	}
	if got == nil {
		return
	}
	if slices.ContainsFunc(got, func(f health.Finding) bool {
		return len(f.Consequences) > 0 && len(flat(f.Consequences)) > len(f.Consequences)
	}) {
		t.Errorf("consequences of consequences: %+v", got)
	}
	for _, kind := range health.Kinds() {
		if n := len(of(got, kind)); n > 12 && (n > 32 || kind != health.FindingContract) {
			t.Errorf("%d findings %s", n, kind)
		}
	}
	for _, f := range flat(got) {
		whole(t, f)
		for _, text := range []string{f.Subject, f.Message, f.Meaning, f.Action} {
			if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("not printable: %q", text)
			}
		}
	}
	if !slices.IsSortedFunc(got, func(a, b health.Finding) int {
		return slices.Index(health.Severities(), a.Severity) - slices.Index(health.Severities(), b.Severity)
	}) {
		t.Errorf("not in order: %+v", got)
	}
}

func TestOddStates(t *testing.T) {
	hold(t, hostile(), health.Default())
	hold(t, hostile(), health.Config{})
	nan := health.Levels{Warning: math.NaN(), Critical: math.NaN()}
	hold(t, hostile(), health.Config{NearLimit: nan, CgroupNearLimit: nan, MemlockNearLimit: nan, OrphanAge: math.MinInt64, QPErrors: math.MinInt64})
}

func FuzzAssess(f *testing.F) {
	for _, s := range append(ill(), nil, &state.DeviceState{}, device(state.Inventory{}), trouble()) {
		b, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "\xff", 0.8)
	}
	f.Fuzz(func(t *testing.T, data []byte, raw string, level float64) {
		var s *state.DeviceState
		if json.Unmarshal(data, &s) != nil {
			return
		}
		thresholds := health.Default()
		thresholds.NearLimit.Warning, thresholds.MemlockNearLimit.Critical = level, level
		if s != nil && s.Resources != nil && s.Resources.Inventory != nil {
			// JSON has no invalid UTF-8.
			s.Name += raw
			i := s.Resources.Inventory
			i.Owners = append(i.Owners, state.Owner{PID: 1, Comm: raw, ContainerID: raw, PodUID: raw, Memlock: &state.Memlock{Pinned: 1, Limit: 1}})
			i.Cgroups = append(i.Cgroups, state.CgroupUse{Cgroup: raw, Resource: raw, Current: 1, Limit: 1})
			i.Incomplete = append(i.Incomplete, state.Incomplete{Type: raw, Detail: raw, Reason: state.IncompleteFailed})
		}
		if s != nil && s.Last != nil {
			s.Last.Error, s.Last.FailedVerb, s.Last.Errno = s.Last.Error+raw, s.Last.FailedVerb+raw, s.Last.Errno+raw
			s.Last.Probes = append(s.Last.Probes, state.Probe{Name: raw, Failures: []state.Failure{{Subject: state.Subject{Object: raw}, Verb: raw, Errno: raw, Message: raw}}})
			s.Contracts = &state.Contracts{Verdicts: []state.Contract{{Name: raw, Verdict: state.VerdictViolated, Observed: raw}}}
		}
		hold(t, s, thresholds)
	})
}
