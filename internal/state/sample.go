package state

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// SampleSpan is how far back samples go.
	SampleSpan = time.Hour
	// sampleEvery is the minimum time between two samples, so that a device has at most 37. By
	// default, every other inventory is sampled.
	sampleEvery = 100 * time.Second
	// maxSampledOwners limits the owners of a sample, and so the memory of a device's samples
	// to 45 KiB.
	maxSampledOwners = 32
)

// Sample is how many objects there were on a device at a moment. Growth is computed from
// samples. Callers must not modify them.
type Sample struct {
	// Taken is when the inventory started.
	Taken time.Time
	// Objects are those of all owners except the exporter.
	Objects Counts
	// Owners are the largest owners, sorted by process.
	Owners []OwnerSample
	// Index is the kernel's number of the device.
	Index uint32
}

// OwnerSample is how many objects a process had.
type OwnerSample struct {
	PID int32
	// Started has the lower bits of Owner.Started.
	Started uint32
	Objects Counts
}

// Counts are numbers of objects by type, in the order of ResourceTypes. Negative means
// unknown.
type Counts [7]int32

func noCounts() Counts { return Counts{-1, -1, -1, -1, -1, -1, -1} }

func (c *Counts) add(typ string, objects int64) {
	if i := slices.Index(ResourceTypes(), typ); i >= 0 && objects >= 0 {
		c[i] = int32(min(int64(max(c[i], 0))+min(objects, math.MaxInt32), math.MaxInt32))
	}
}

func (c *Counts) all() (objects int64) {
	for _, n := range c {
		objects += int64(max(n, 0))
	}
	return objects
}

// Of returns how many objects a process had; false if it is not among the owners, or if
// another process had its PID.
func (s *Sample) Of(o *Owner) (Counts, bool) {
	for _, one := range s.Owners {
		if int(one.PID) == o.PID && (o.Started == 0 || one.Started == 0 || one.Started == uint32(o.Started)) {
			return one.Objects, true
		}
	}
	return noCounts(), false
}

// Sampled returns samples with one of an inventory added, unless the latest is too recent. It
// drops those that are too old, of another device of the same name, or from before a clock
// was set back. It does not modify its arguments.
func Sampled(before []Sample, i *Inventory, taken time.Time) []Sample {
	if len(before) > 0 {
		latest := &before[len(before)-1]
		switch age := taken.Sub(latest.Taken); {
		case latest.Index != i.Index || age < 0:
			before = nil
		case age < sampleEvery:
			return before
		}
	}
	for len(before) > 0 && taken.Sub(before[0].Taken) > SampleSpan {
		before = before[1:]
	}
	return slices.Concat(before, []Sample{sampleOf(i, taken)})
}

func sampleOf(i *Inventory, taken time.Time) Sample {
	s := Sample{Taken: taken, Objects: noCounts(), Index: i.Index}
	for _, o := range i.Objects {
		if o.Owner != OwnerExporter {
			s.Objects.add(o.Type, o.Objects)
		}
	}
	owners := make([]OwnerSample, 0, len(i.Owners))
	for n := range i.Owners {
		o := OwnerSample{PID: int32(i.Owners[n].PID), Started: uint32(i.Owners[n].Started), Objects: noCounts()}
		for _, c := range i.Owners[n].Objects {
			if i.Enumerated(c.Type) { // Otherwise the count depends on how many were read.
				o.Objects.add(c.Type, c.Objects)
			}
		}
		owners = append(owners, o)
	}
	slices.SortStableFunc(owners, func(a, b OwnerSample) int { return cmp.Compare(b.Objects.all(), a.Objects.all()) })
	s.Owners = slices.Clone(owners[:min(len(owners), maxSampledOwners)])
	slices.SortStableFunc(s.Owners, func(a, b OwnerSample) int { return cmp.Compare(a.PID, b.PID) })
	return s
}
