package health_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// maxFindings is the most findings that any device may have.
const maxFindings = 64

// hold assesses a device and makes sure of what always holds: the same state gives
// the same findings, whole, printable, in order and no more than there may be, and is
// left as it was.
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
	if n := len(got); n > maxFindings {
		t.Errorf("%d findings", n)
	}
	for _, f := range got {
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

// TestOddStates makes sure that states which no host has do no harm.
func TestOddStates(t *testing.T) {
	t.Parallel()
	hold(t, hostile(), health.Default())
	hold(t, hostile(), health.Config{})
	random := rand.New(rand.NewPCG(1, 2))
	nan := health.Levels{Warning: math.NaN(), Critical: math.NaN()}
	for range 400 {
		s := new(state.DeviceState)
		fill(random, reflect.ValueOf(s).Elem(), 0)
		if random.IntN(2) == 0 {
			s.Present = true
		}
		hold(t, s, health.Default())
		hold(t, s, health.Config{NearLimit: nan, CgroupNearLimit: nan, MemlockNearLimit: nan, OrphanAge: math.MinInt64, QPErrors: math.MinInt64})
	}
}

// fill sets a value to anything, with a liking for words that mean something and for
// numbers at the edge.
func fill(random *rand.Rand, v reflect.Value, depth int) {
	words := []string{
		"", "qp", "pd", "mr", "cq", "srq", "max_qp", "max_pd", "err", "sqe", "user", "kernel", "unknown", "ok", "failed", "timeout",
		"max_objects", "interrupted", "not_supported", "hca_object", "EBUSY", "ENOMEM", "EPERM", "crashed", "ibv_open_device", "ibv_destroy_cq",
		"loopback", "flush", "any", "loopback any vector 0", "message", "not_permitted", "violated", "critical", "info", "down", "active", "\xff\x00", "'\n\x1b[31m`{pid}`", "\u202eevil", strings.Repeat("long", 200),
	}
	numbers := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 2, 79, 95, 100, 1 << 16, 1 << 48, math.MaxInt64 - 1, math.MaxInt64}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf([]time.Time{{}, taken(), taken().Add(-time.Hour), time.Unix(0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}[random.IntN(5)]))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if random.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(random, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(random, v.Field(i), depth+1)
		}
	case reflect.Slice:
		n := random.IntN(4)
		if random.IntN(20) == 0 && depth < 5 {
			n = 40
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(random, v.Index(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(random, v.Index(i), depth+1)
		}
	case reflect.String:
		v.SetString(words[random.IntN(len(words))])
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(numbers[random.IntN(len(numbers))])
	case reflect.Int32:
		v.SetInt(int64(int32(numbers[random.IntN(len(numbers))])))
	case reflect.Uint32:
		v.SetUint(uint64(random.Uint32()))
	}
}

// FuzzAssess makes sure of the same for states that somebody thought out.
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
