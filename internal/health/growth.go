package health

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// growthParts is into how many parts the samples are divided, whose lowest numbers are
	// compared: what goes up and down leaves them where they are, a step lifts one of them
	// above the one before, and what never stops lifts them all.
	growthParts = 6
	// growthRises is how many of the parts have to be above the one before. As a job that
	// starts lifts two at most, it takes more than one to look like growth.
	growthRises = 4
	// growthPace is how fast the last rise has to be, compared with the fastest but one: a
	// pool that is nearly full gets slower. The fastest may be a step.
	growthPace = 0.6
	// growthTold is how long samples must go back for growth to be told, if not judged.
	growthTold = 10 * time.Minute
	// mostAbsent is in how many samples in a row a process may be missing, as one that is
	// not among the largest owners for a while, to be the same one after.
	mostAbsent = 3
	// maxGrowers is how many of those who grow fastest are told.
	maxGrowers = 10
)

// Trend is how a number of objects has grown.
type Trend struct {
	// Type is what they are.
	Type string
	// From and To are how many there were at first and at last, and Over is the time
	// between.
	From, To int64
	Over     time.Duration
	// PerHour is the usual pace, in objects an hour and above 0, which a step does not change.
	PerHour float64
	// OnlyGrows tells that there never were fewer than before.
	OnlyGrows bool
	// Steady tells that they grow all the time, by as many and for as long as a finding
	// takes.
	Steady bool
	// Limit is the most that the device gives to all owners together, by what it claims or
	// where it was seen to end; 0 if neither is known.
	Limit int64
	// Left is how long the rest takes until the limit: at this pace, or at that of all
	// owners together if they grow faster.
	Left time.Duration
	// lately is the last pace, which is 0 of what has grown and stays.
	lately float64
}

// Grower is an owner whose objects of one type grow.
type Grower struct {
	PID                       int
	Comm, ContainerID, PodUID string
	Trend
}

// Growth is how the objects on a device grow.
type Growth struct {
	// All are the types that grow, of all owners together, in the order of
	// state.ResourceTypes.
	All []Trend
	// Growers are the owners that grow, the fastest first.
	Growers []Grower
}

// point is how many objects there were at a time.
type point struct {
	at      time.Duration
	objects int64
}

// GrowthOf returns how the objects on a device grow by the samples of it: those of the last
// inventory's owners, and of all owners together. What the device had no more of is where
// it ends, if that is below what it claims.
func GrowthOf(dev *state.DeviceState, exhausted []Exhausted, c Growing) *Growth {
	g := new(Growth)
	r := dev.Resources
	if r == nil || len(r.Samples) < growthParts || r.Inventory == nil {
		return g
	}
	types := state.ResourceTypes()
	all := make(map[string]Trend)
	known := make([]point, 0, len(r.Samples))
	for i, kind := range types {
		trend, grows := trendOf(points(known, r.Samples, func(s *state.Sample) (int32, bool) { return s.Objects[i], true }), c)
		if !grows {
			continue
		}
		trend.Type = kind
		trend.expect(limitOf(dev.Info, exhausted, kind), trend.To, 0)
		all[kind] = trend
		g.All = append(g.All, trend)
	}
	latest := &r.Samples[len(r.Samples)-1]
	for n := range r.Inventory.Owners {
		o := &r.Inventory.Owners[n]
		for i, kind := range types {
			trend, grows := trendOf(points(known, r.Samples, func(s *state.Sample) (int32, bool) {
				counts, there := s.Of(o)
				return counts[i], there
			}), c)
			if !grows {
				continue
			}
			trend.Type = kind
			together := 0.0
			if all[kind].Steady {
				together = all[kind].PerHour
			}
			trend.expect(limitOf(dev.Info, exhausted, kind), int64(latest.Objects[i]), together)
			g.Growers = append(g.Growers, Grower{PID: o.PID, Comm: o.Comm, ContainerID: o.ContainerID, PodUID: o.PodUID, Trend: trend})
		}
	}
	slices.SortStableFunc(g.Growers, func(a, b Grower) int {
		return cmp.Or(cmp.Compare(b.PerHour, a.PerHour), cmp.Compare(a.PID, b.PID))
	})
	return g
}

// Fastest returns the owners that grow fastest, ten at most.
func (g *Growth) Fastest() []Grower { return g.Growers[:min(len(g.Growers), maxGrowers)] }

// points returns the known numbers of the samples, from the last time on that whoever has
// them came. They take the place of what is in the list.
func points(all []point, samples []state.Sample, of func(*state.Sample) (objects int32, there bool)) []point {
	all = all[:0]
	absent := 0
	for i := range samples {
		s := &samples[i]
		objects, there := of(s)
		switch {
		case !there:
			if absent++; absent > mostAbsent {
				all = all[:0]
			}
			continue
		case objects >= 0:
			all = append(all, point{s.Taken.Sub(samples[0].Taken), int64(objects)})
		}
		absent = 0
	}
	return all
}

// trendOf returns how numbers grow; false if they do not, or there are too few to tell.
func trendOf(all []point, c Growing) (t Trend, grows bool) {
	if len(all) < growthParts {
		return t, false
	}
	first, last := all[0], all[len(all)-1]
	t = Trend{From: first.objects, To: last.objects, Over: last.at - first.at, OnlyGrows: true}
	if t.Over < growthTold || t.To <= t.From {
		return t, false
	}
	for i, p := range all[1:] {
		t.OnlyGrows = t.OnlyGrows && p.objects >= all[i].objects
	}
	var lowest [growthParts]point
	var ranges [growthParts]int64
	for i := range lowest {
		part := all[i*len(all)/growthParts : (i+1)*len(all)/growthParts]
		low, high := part[0].objects, part[0].objects
		for _, p := range part {
			low, high = min(low, p.objects), max(high, p.objects)
		}
		lowest[i], ranges[i] = point{part[0].at, low}, high-low
	}
	var paces [growthParts - 1]float64
	rises := 0
	for i := range paces {
		paces[i] = pace(lowest[i], lowest[i+1])
		if paces[i] > 0 {
			rises++
		}
	}
	lately := paces[len(paces)-1]
	slices.Sort(paces[:])
	slices.Sort(ranges[:])
	t.PerHour, t.lately = paces[len(paces)/2], lately
	// What goes up and down by more than it grows by may not grow at all.
	least := max(c.Objects, ranges[len(ranges)/2])
	t.Steady = rises >= growthRises && lately > 0 && lately >= growthPace*paces[len(paces)-2] &&
		t.Over >= c.Window && t.PerHour*t.Over.Hours() >= float64(least)
	return t, t.PerHour > 0
}

// pace returns by how many objects an hour a number changed; 0 if no time went by.
func pace(from, to point) float64 {
	if to.at <= from.at {
		return 0
	}
	return float64(to.objects-from.objects) / (to.at - from.at).Hours()
}

// limitOf returns how many objects of a type a device gives, by what it claims and by what
// it was seen to have no more of; 0 if neither tells.
func limitOf(info *state.Device, exhausted []Exhausted, kind string) (limit int64) {
	if info != nil {
		limit, _ = info.LimitOf(kind)
	}
	for _, e := range exhausted {
		if e.Type == kind && e.Objects > 0 && (limit == 0 || e.Objects < limit) {
			limit = e.Objects
		}
	}
	return limit
}

// expect says how long the rest takes until the limit of the device, of which so many are
// used, at the pace of t, or at another one if that is faster. A limit of 0 is none.
func (t *Trend) expect(limit, used int64, pace float64) {
	if limit == 0 {
		return
	}
	hours := max(float64(limit-used), 0) / max(t.PerHour, pace)
	t.Limit, t.Left = limit, time.Duration(min(hours*float64(time.Hour), float64(text.Long)))
}

// growing finds who creates objects and does not destroy them: processes, and all owners
// together where those do not explain it.
func (a *assessor) growing() {
	g := a.growth
	if g == nil {
		g = GrowthOf(a.state, a.exhausted, a.t.Growing)
	}
	explained := make(map[string]float64)
	known := make(map[int]bool)
	for i := range g.Growers {
		o := &g.Growers[i]
		if !o.Steady || known[o.PID] {
			continue
		}
		known[o.PID] = true
		var trends []Trend
		for _, other := range g.Growers {
			if other.PID == o.PID && other.Steady {
				trends = append(trends, other.Trend)
				explained[other.Type] += other.PerHour
			}
		}
		who := ownerName(&state.Owner{PID: o.PID, Comm: o.Comm})
		a.grows(who, who+place(o.ContainerID, o.PodUID), o.PID, trends)
	}
	for _, t := range g.All {
		if t.Steady && explained[t.Type] < t.PerHour/2 {
			a.grows(t.Type, "All owners together", 0, []Trend{t}, g.fastest(t.Type)...)
		}
	}
}

// fastest says which process has the type that grows fastest, if any still does: a pool that
// was filled a while ago is not why all together grow.
func (g *Growth) fastest(kind string) []string {
	for i := range g.Growers {
		if o := &g.Growers[i]; o.Type == kind && o.lately > 0 {
			who := ownerName(&state.Owner{PID: o.PID, Comm: o.Comm}) + place(o.ContainerID, o.PodUID)
			return []string{fmt.Sprintf("The fastest is %s: %s.", who, text.Pace(o.Rounded()))}
		}
	}
	return nil
}

// grows finds that some types of objects of an owner grow, with what else there is to say.
func (a *assessor) grows(subject, whose string, pid int, trends []Trend, more ...string) {
	slices.SortStableFunc(trends, func(x, y Trend) int {
		return cmp.Or(cmp.Compare(x.rest(), y.rest()), cmp.Compare(y.PerHour, x.PerHour))
	})
	soonest := trends[0]
	severity := SeverityInfo
	if soonest.rest() < a.t.Growing.Within {
		severity = SeverityWarning
	}
	words := make([]string, 0, len(trends))
	for i := range trends {
		words = append(words, trends[i].String())
	}
	message := []string{whose + ": " + strings.Join(words, "; ") + "."}
	if soonest.OnlyGrows {
		message = append(message, "The count never went down.")
	}
	a.add(observation{
		kind: FindingGrowing, severity: severity, subject: subject, message: strings.Join(append(message, more...), " "), size: 1 / max(soonest.rest().Hours(), 1e-9),
		replace: []string{"{show}", a.show(soonest.Type, pid)},
	})
}

// rest returns how long the rest takes until the limit; the longest time if there is none.
func (t *Trend) rest() time.Duration {
	if t.Limit == 0 {
		return math.MaxInt64
	}
	return t.Left
}

// String returns how many there were and are, the pace and how long the rest takes.
func (t *Trend) String() string {
	s := fmt.Sprintf("%s → %s in %s, %s", text.Number(t.From), text.Objects(t.To, t.Type), text.Age(t.Over), text.Pace(t.Rounded()))
	if t.Limit > 0 {
		s += ", " + text.Until(t.Left) + " until the limit of " + text.Number(t.Limit)
	}
	return s
}

// Rounded returns the pace as a whole number.
func (t *Trend) Rounded() int64 { return int64(math.Round(min(t.PerHour, math.MaxInt32*3600))) }
