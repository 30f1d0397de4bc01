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
	// growthParts is how many parts the samples are divided into. Their minimums are compared. Fluctuation leaves the
	// minimums unchanged, a step raises one of them above the one before, and a leak raises all.
	growthParts = 6
	// growthRises is how many minimums must be above the one before. A starting job raises at most two.
	growthRises = 4
	// growthPace is the minimum of the last rise as a fraction of the second fastest. A filling pool slows down. The
	// fastest rise may be a step.
	growthPace = 0.6
	// growthMinSpan is how long samples must go back for growth to be shown at all.
	growthMinSpan = 10 * time.Minute
	// maxAbsent is in how many consecutive samples an owner may be missing. Only the largest owners are sampled.
	maxAbsent = 3
	// maxGrowers limits Fastest.
	maxGrowers = 10
)

// Trend is how the number of objects of a type has grown.
type Trend struct {
	Type string `json:"type"`
	// From and To are the first and the last count, and Over is the time between them.
	From int64         `json:"from"`
	To   int64         `json:"to"`
	Over time.Duration `json:"over_ns"`
	// PerHour is the median pace in objects per hour. It is above 0, and a step does not change it.
	PerHour float64 `json:"per_hour"`
	// OnlyGrows is true if the count never decreased.
	OnlyGrows bool `json:"only_grows"`
	// Steady is true if the growth is continuous, and as large and long as a finding requires.
	Steady bool `json:"steady"`
	// Limit is the lower one of what the device claims and where it was seen to refuse more. Zero means unknown.
	Limit int64 `json:"limit,omitempty"`
	// TimeToLimit is the time until the limit is reached, at this pace or at that of all owners if it is faster.
	TimeToLimit time.Duration `json:"time_to_limit_ns,omitempty"`
	// recent is the last pace. It is 0 once the growth has ended.
	recent float64
}

// Grower is an owner whose objects of one type grow.
type Grower struct {
	PID         int    `json:"pid"`
	Comm        string `json:"comm,omitempty"`
	ContainerID string `json:"container_id,omitempty"`
	PodUID      string `json:"pod_uid,omitempty"`
	Trend
}

// Growth is how the objects on a device grow.
type Growth struct {
	// All are the growing types, of all owners together, in the order of state.ResourceTypes.
	All []Trend `json:"all,omitempty"`
	// Growers are the growing owners, the fastest first.
	Growers []Grower `json:"growers,omitempty"`
}

// point is a count at a time.
type point struct {
	at      time.Duration
	objects int64
}

// GrowthOf returns the growth on a device according to its samples, for all owners together and for each owner in the
// last inventory.
func GrowthOf(dev *state.DeviceState, exhausted []Exhausted, c Growing) *Growth {
	g := new(Growth)
	r := dev.Resources
	if r == nil || len(r.Samples) < growthParts || r.Inventory == nil {
		return g
	}
	types := state.ResourceTypes()
	all := make(map[string]Trend)
	buffer := make([]point, 0, len(r.Samples))
	for i, kind := range types {
		trend, grows := trendOf(points(buffer, r.Samples, func(s *state.Sample) (int32, bool) { return s.Objects[i], true }), c)
		if !grows {
			continue
		}
		trend.Type = kind
		trend.project(limitOf(dev.Info, exhausted, kind), trend.To, 0)
		all[kind] = trend
		g.All = append(g.All, trend)
	}
	latest := &r.Samples[len(r.Samples)-1]
	for n := range r.Inventory.Owners {
		o := &r.Inventory.Owners[n]
		for i, kind := range types {
			trend, grows := trendOf(points(buffer, r.Samples, func(s *state.Sample) (int32, bool) {
				counts, present := s.Of(o)
				return counts[i], present
			}), c)
			if !grows {
				continue
			}
			trend.Type = kind
			together := 0.0
			if all[kind].Steady {
				together = all[kind].PerHour
			}
			trend.project(limitOf(dev.Info, exhausted, kind), int64(latest.Objects[i]), together)
			g.Growers = append(g.Growers, Grower{PID: o.PID, Comm: o.Comm, ContainerID: o.ContainerID, PodUID: o.PodUID, Trend: trend})
		}
	}
	slices.SortStableFunc(g.Growers, func(a, b Grower) int {
		return cmp.Or(cmp.Compare(b.PerHour, a.PerHour), cmp.Compare(a.PID, b.PID))
	})
	return g
}

// Fastest returns the ten owners that grow fastest.
func (g *Growth) Fastest() []Grower { return g.Growers[:min(len(g.Growers), maxGrowers)] }

// points returns the known counts since the owner last appeared. It overwrites the buffer.
func points(buffer []point, samples []state.Sample, of func(*state.Sample) (objects int32, present bool)) []point {
	buffer = buffer[:0]
	absent := 0
	for i := range samples {
		s := &samples[i]
		objects, present := of(s)
		switch {
		case !present:
			if absent++; absent > maxAbsent {
				buffer = buffer[:0]
			}
			continue
		case objects >= 0:
			buffer = append(buffer, point{s.Taken.Sub(samples[0].Taken), int64(objects)})
		}
		absent = 0
	}
	return buffer
}

// trendOf returns how counts grow. grows is false if they do not, or if there are too few.
func trendOf(all []point, c Growing) (t Trend, grows bool) {
	if len(all) < growthParts {
		return t, false
	}
	first, last := all[0], all[len(all)-1]
	t = Trend{From: first.objects, To: last.objects, Over: last.at - first.at, OnlyGrows: true}
	if t.Over < growthMinSpan || t.To <= t.From {
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
	t.recent = paces[len(paces)-1]
	slices.Sort(paces[:])
	slices.Sort(ranges[:])
	t.PerHour = paces[len(paces)/2]
	// A count that fluctuates by more than it grows may not grow at all.
	least := max(c.Objects, ranges[len(ranges)/2])
	t.Steady = rises >= growthRises && t.recent > 0 && t.recent >= growthPace*paces[len(paces)-2] &&
		t.Over >= c.Window && t.PerHour*t.Over.Hours() >= float64(least)
	return t, t.PerHour > 0
}

// pace returns a change in objects per hour, or 0 if no time passed.
func pace(from, to point) float64 {
	if to.at <= from.at {
		return 0
	}
	return float64(to.objects-from.objects) / (to.at - from.at).Hours()
}

// limitOf returns the lower one of what a device claims and where it refused more. Zero means unknown.
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

// project sets the time to a limit at the faster one of two paces. A limit of zero is unknown.
func (t *Trend) project(limit, used int64, pace float64) {
	if limit == 0 {
		return
	}
	hours := max(float64(limit-used), 0) / max(t.PerHour, pace)
	t.Limit, t.TimeToLimit = limit, time.Duration(min(hours*float64(time.Hour), float64(text.Long)))
}

// growing adds findings for processes that create objects without destroying them, and for all owners together if no
// process explains their growth.
func (a *assessor) growing() {
	explained := make(map[string]float64)
	reported := make(map[int]bool)
	for i := range a.growth.Growers {
		o := &a.growth.Growers[i]
		if !o.Steady || reported[o.PID] {
			continue
		}
		reported[o.PID] = true
		var trends []Trend
		for _, other := range a.growth.Growers {
			if other.PID == o.PID && other.Steady {
				trends = append(trends, other.Trend)
				explained[other.Type] += other.PerHour
			}
		}
		who := ownerName(o.PID, o.Comm)
		a.grows(who, who+place(o.ContainerID, o.PodUID), o.PID, trends, "")
	}
	for _, t := range a.growth.All {
		if t.Steady && explained[t.Type] < t.PerHour/2 {
			a.grows(t.Type, "All owners together", 0, []Trend{t}, a.growth.fastest(t.Type))
		}
	}
}

// fastest names the fastest process that still grows, if there is one.
func (g *Growth) fastest(kind string) string {
	for i := range g.Growers {
		if o := &g.Growers[i]; o.Type == kind && o.recent > 0 {
			return fmt.Sprintf(" The fastest is %s%s: %s.", ownerName(o.PID, o.Comm), place(o.ContainerID, o.PodUID), text.Pace(o.Rounded()))
		}
	}
	return ""
}

// grows adds one finding for all growing types of an owner.
func (a *assessor) grows(subject, whose string, pid int, trends []Trend, more string) {
	slices.SortStableFunc(trends, func(x, y Trend) int {
		return cmp.Or(cmp.Compare(x.remaining(), y.remaining()), cmp.Compare(y.PerHour, x.PerHour))
	})
	soonest := trends[0]
	severity := SeverityInfo
	if soonest.remaining() < a.config.Growing.Within {
		severity = SeverityWarning
	}
	words := make([]string, 0, len(trends))
	for i := range trends {
		words = append(words, trends[i].String())
	}
	message := whose + ": " + strings.Join(words, "; ") + "."
	if soonest.OnlyGrows {
		message += " The count never went down."
	}
	a.add(observation{
		kind: FindingGrowing, severity: severity, subject: subject, message: message + more, size: 1 / max(soonest.remaining().Hours(), 1e-9),
		replace: []string{"{show}", a.show(soonest.Type, pid)},
	})
}

// remaining returns the time to the limit, or the longest time without a limit.
func (t *Trend) remaining() time.Duration {
	if t.Limit == 0 {
		return math.MaxInt64
	}
	return t.TimeToLimit
}

// String returns the counts, the pace and the time to the limit.
func (t *Trend) String() string {
	s := fmt.Sprintf("%s → %s in %s, %s", text.Number(t.From), text.Objects(t.To, t.Type), text.Age(t.Over), text.Pace(t.Rounded()))
	if t.Limit > 0 {
		s += ", " + text.Until(t.TimeToLimit) + " until the limit of " + text.Number(t.Limit)
	}
	return s
}

// Rounded returns the pace as an integer.
func (t *Trend) Rounded() int64 { return int64(math.Round(min(t.PerHour, math.MaxInt32*3600))) }
