package state

import (
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"
)

// counting returns an inventory in which each owner has as many queue pairs as its PID.
func counting(owners int) *Inventory {
	i := &Inventory{Index: 1, Objects: []ObjectCount{
		{Type: "qp", Owner: OwnerUser, Objects: 100},
		{Type: "qp", Owner: OwnerKernel, Objects: 1},
		{Type: "qp", Owner: OwnerExporter, Objects: 7},
		{Type: "mr", Owner: OwnerUnknown, Objects: math.MaxInt64},
		{Type: "future", Owner: OwnerUser, Objects: 3},
	}}
	for n := range owners {
		i.Owners = append(i.Owners, Owner{PID: owners - n, Objects: []TypeCount{{"qp", int64(owners - n)}, {"mr", 5}}})
	}
	i.Incomplete = []Incomplete{{Type: "mr", Reason: IncompleteMaxObjects}} // How many were read says nothing.
	return i
}

func TestSample(t *testing.T) {
	t.Parallel()
	at := time.Unix(1e9, 0)
	s := Sampled(nil, counting(100), at)[0]
	if want := (Counts{-1, -1, 101, -1, math.MaxInt32, -1, -1}); s.Objects != want || !s.Taken.Equal(at) {
		t.Errorf("objects %v at %v, want %v", s.Objects, s.Taken, want)
	}
	if len(s.Owners) != maxSampledOwners || cap(s.Owners) > 2*maxSampledOwners || s.Owners[0].PID != 69 || s.Owners[31].PID != 100 {
		t.Errorf("owners %v", s.Owners)
	}
	if got, known := s.Of(&Owner{PID: 70}); !known || got != (Counts{-1, -1, 70, -1, -1, -1, -1}) {
		t.Errorf("process 70 has %v, %t", got, known)
	}
	if got, known := s.Of(&Owner{PID: 1}); known || got != noCounts() {
		t.Errorf("process 1 has %v, %t", got, known)
	}
}

func TestSampleOfAnother(t *testing.T) {
	t.Parallel()
	i := &Inventory{Owners: []Owner{
		{PID: 7, Started: 1<<32 + 500, Objects: []TypeCount{{"qp", 3}}},
		{PID: 8, Objects: []TypeCount{{"qp", 3}}},
	}}
	s := Sampled(nil, i, time.Unix(1e9, 0))[0]
	for _, tc := range []struct {
		o    Owner
		want bool
	}{
		{Owner{PID: 7, Started: 1<<32 + 500}, true},
		{Owner{PID: 7, Started: 1<<32 + 501}, false},
		{Owner{PID: 7}, true},
		{Owner{PID: 8, Started: 900}, true},
	} {
		if _, known := s.Of(&tc.o); known != tc.want {
			t.Errorf("process %d, started at %d: known %t", tc.o.PID, tc.o.Started, known)
		}
	}
}

func TestSampled(t *testing.T) {
	t.Parallel()
	at, i := time.Unix(1e9, 0), counting(100)
	for _, every := range []time.Duration{5 * time.Second, 54 * time.Second, time.Minute, 66 * time.Second, 5 * time.Minute, 2 * time.Hour} {
		var samples []Sample
		for now := time.Duration(0); now <= 3*time.Hour; now += every {
			before := slices.Clone(samples)
			after := Sampled(samples, i, at.Add(now))
			if !slices.EqualFunc(before, samples, func(a, b Sample) bool { return a.Taken.Equal(b.Taken) }) {
				t.Fatalf("every %s: what was handed in has changed", every)
			}
			samples = after
		}
		span := samples[len(samples)-1].Taken.Sub(samples[0].Taken)
		if span > time.Hour || every <= 5*time.Minute && span < 55*time.Minute {
			t.Errorf("every %s: samples go back %s", every, span)
		}
		size := uintptr(0)
		for i, s := range samples {
			size += unsafe.Sizeof(s) + uintptr(cap(s.Owners))*unsafe.Sizeof(s.Owners[0])
			if i > 0 && s.Taken.Sub(samples[i-1].Taken) < sampleEvery {
				t.Errorf("every %s: samples are %s from each other", every, s.Taken.Sub(samples[i-1].Taken))
			}
		}
		if size > 45<<10 {
			t.Errorf("every %s: %d samples take %d bytes", every, len(samples), size)
		}
	}
}

func TestSampledFromScratch(t *testing.T) {
	t.Parallel()
	at := time.Unix(1e9, 0)
	before := Sampled(Sampled(nil, counting(1), at), counting(1), at.Add(time.Hour))
	if len(before) != 2 {
		t.Fatalf("%d samples", len(before))
	}
	another := counting(1)
	another.Index = 2
	if after := Sampled(before, another, at.Add(time.Hour+time.Second)); len(after) != 1 {
		t.Errorf("of another device: %d samples", len(after))
	}
	if after := Sampled(before, counting(1), at.Add(30*time.Minute)); len(after) != 1 {
		t.Errorf("by a clock that was set back: %d samples", len(after))
	}
}
