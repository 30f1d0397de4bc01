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
	// sampleEvery is the least time between two samples: half of what inventories bring
	// by default, whose jitter leaves at least so much between every other one. So there
	// are 37 of a device at most.
	sampleEvery = 100 * time.Second
	// maxSampledOwners is the most owners of a sample, those with most objects. One takes
	// 36 bytes, and so the samples of a device 45 KiB at most.
	maxSampledOwners = 32
)

// Sample is how many objects there were on a device at a moment: what growth is told from.
// Nobody changes it.
type Sample struct {
	// Taken is when the inventory was started that counted them.
	Taken time.Time
	// Objects are those of all owners together, but of the exporter.
	Objects Counts
	// Owners are the largest ones, sorted by process. Those of all others are in Objects
	// alone.
	Owners []OwnerSample
	// Index is the kernel's number of the device.
	Index uint32
}

// OwnerSample is how many objects a process had.
type OwnerSample struct {
	PID int32
	// Started are the lower bits of that of Owner, which tell processes apart as well.
	Started uint32
	Objects Counts
}

// Counts are numbers of objects by type, in the order of ResourceTypes; below 0 where
// the number is not known.
type Counts [7]int32

// noCounts are the counts of which none is known.
func noCounts() Counts { return Counts{-1, -1, -1, -1, -1, -1, -1} }

// add adds objects to a count.
func (c *Counts) add(typ string, objects int64) {
	if i := slices.Index(ResourceTypes(), typ); i >= 0 && objects >= 0 {
		c[i] = int32(min(int64(max(c[i], 0))+min(objects, math.MaxInt32), math.MaxInt32))
	}
}

// all returns how many objects there are of all types together.
func (c *Counts) all() (objects int64) {
	for _, n := range c {
		objects += int64(max(n, 0))
	}
	return objects
}

// Of returns how many objects a process had; false if it is not among the owners, as when
// another one had its number.
func (s *Sample) Of(o *Owner) (Counts, bool) {
	i, found := slices.BinarySearchFunc(s.Owners, o.PID, func(s OwnerSample, pid int) int { return cmp.Compare(int(s.PID), pid) })
	if !found || o.Started != 0 && s.Owners[i].Started != 0 && s.Owners[i].Started != uint32(o.Started) {
		return noCounts(), false
	}
	return s.Owners[i].Objects, true
}

// Sampled returns samples, the oldest first, with one of an inventory that was started at a
// moment, unless the latest is hardly older. It changes none of those before. Those of
// another device of the same name, and those from before a clock was set back, are gone.
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
	first := 0
	for first < len(before) && taken.Sub(before[first].Taken) > SampleSpan {
		first++
	}
	after := make([]Sample, 0, len(before)-first+1)
	return append(append(after, before[first:]...), sampleOf(i, taken))
}

// sampleOf returns what an inventory counted.
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
			o.Objects.add(c.Type, c.Objects)
		}
		owners = append(owners, o)
	}
	slices.SortStableFunc(owners, func(a, b OwnerSample) int { return cmp.Compare(b.Objects.all(), a.Objects.all()) })
	s.Owners = slices.Clone(owners[:min(len(owners), maxSampledOwners)])
	slices.SortStableFunc(s.Owners, func(a, b OwnerSample) int { return cmp.Compare(a.PID, b.PID) })
	return s
}
