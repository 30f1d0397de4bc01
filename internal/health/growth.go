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
	SlurmJobID  string `json:"slurm_job_id,omitempty"`
	Trend
}

// Growth is how the objects on a device grow.
type Growth struct {
	// All are the growing types, of all owners together, in the order of state.ResourceTypes.
	All []Trend `json:"all,omitempty"`
	// Growers are the growing owners, the fastest first.
	Growers []Grower `json:"growers,omitempty"`
}

type point struct {
	at      time.Duration
	objects int64
}

func growthOf(dev *state.DeviceState, exhausted []Exhausted, c Growing) *Growth {
	g := new(Growth)
	r := dev.Resources
	if r == nil || len(r.Samples) < growthParts || r.Inventory == nil {
		return g
	}
	latest := r.Samples[len(r.Samples)-1]
	together := make(map[string]float64) // The pace of all owners.
	trends := func(of func(*state.Sample) (state.Counts, bool)) (all []Trend) {
		for i, kind := range state.ResourceTypes() {
			if t, grows := trendOf(pointsOf(r.Samples, i, of), c); grows {
				t.Type = kind
				t.project(limitOf(dev.Info, exhausted, kind), max(t.To, int64(latest.Objects[i])), together[kind])
				all = append(all, t)
			}
		}
		return all
	}
	g.All = trends(func(s *state.Sample) (state.Counts, bool) { return s.Objects, true })
	for _, t := range g.All {
		if t.Steady {
			together[t.Type] = t.PerHour
		}
	}
	for _, o := range r.Inventory.Owners {
		for _, t := range trends(func(s *state.Sample) (state.Counts, bool) { return s.Of(&o) }) {
			g.Growers = append(g.Growers, Grower{o.PID, o.Comm, o.ContainerID, o.PodUID, o.SlurmJobID, t})
		}
	}
	slices.SortStableFunc(g.Growers, func(a, b Grower) int {
		return cmp.Or(cmp.Compare(b.PerHour, a.PerHour), cmp.Compare(a.PID, b.PID))
	})
	return g
}

func byCount(a, b point) int { return cmp.Compare(a.objects, b.objects) }

// pointsOf returns the known counts of a type since the owner last appeared.
func pointsOf(samples []state.Sample, kind int, of func(*state.Sample) (objects state.Counts, present bool)) []point {
	var known []point
	absent := 0
	for i := range samples {
		objects, present := of(&samples[i])
		if absent++; present {
			absent = 0
		}
		if absent > maxAbsent {
			known = nil
		}
		if present && objects[kind] >= 0 {
			known = append(known, point{samples[i].Taken.Sub(samples[0].Taken), int64(objects[kind])})
		}
	}
	return known
}

// trendOf returns how counts grow. grows is false if they do not, or if there are too few.
func trendOf(all []point, c Growing) (t Trend, grows bool) {
	if len(all) < growthParts {
		return t, false
	}
	first, last := all[0], all[len(all)-1]
	t = Trend{From: first.objects, To: last.objects, Over: last.at - first.at}
	t.OnlyGrows = slices.IsSortedFunc(all, byCount)
	if t.Over < growthMinSpan || t.To <= t.From {
		return t, false
	}
	var lowest [growthParts]point
	var ranges [growthParts]int64
	for i := range lowest {
		part := all[i*len(all)/growthParts : (i+1)*len(all)/growthParts]
		low := slices.MinFunc(part, byCount).objects
		lowest[i], ranges[i] = point{part[0].at, low}, slices.MaxFunc(part, byCount).objects-low
	}
	var paces [growthParts - 1]float64 // In objects per hour.
	rises := 0
	for i := range paces {
		from, to := lowest[i], lowest[i+1]
		if to.at > from.at {
			paces[i] = float64(to.objects-from.objects) / (to.at - from.at).Hours()
		}
		if paces[i] > 0 {
			rises++
		}
	}
	t.recent = paces[len(paces)-1]
	slices.Sort(paces[:])
	slices.Sort(ranges[:])
	t.PerHour = paces[len(paces)/2]
	// A count that fluctuates by more than it grows may not grow at all.
	minimum := max(c.Objects, ranges[len(ranges)/2])
	t.Steady = rises >= growthRises && t.recent > 0 && t.recent >= growthPace*paces[len(paces)-2] &&
		t.Over >= c.Window && t.PerHour*t.Over.Hours() >= float64(minimum)
	return t, t.PerHour > 0
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

func (a *assessor) growing() {
	explained := make(map[string]float64)
	trends := make(map[int][]Trend)
	for _, o := range a.growth.Growers {
		if o.Steady {
			trends[o.PID] = append(trends[o.PID], o.Trend)
			explained[o.Type] += o.PerHour
		}
	}
	for _, o := range a.growth.Growers {
		if of := trends[o.PID]; of != nil {
			a.grows(ownerName(o.PID, o.Comm), o.name(), o.PID, of, "")
			delete(trends, o.PID)
		}
	}
	for _, t := range a.growth.All {
		if t.Steady && explained[t.Type] < t.PerHour/2 {
			fastest := ""
			if o := find(a.growth.Growers, func(o *Grower) bool { return o.Type == t.Type && o.recent > 0 }); o != nil {
				fastest = fmt.Sprintf(" The fastest is %s: %s.", o.name(), text.Pace(o.Rounded()))
			}
			a.grows(t.Type, "All owners together", 0, []Trend{t}, fastest)
		}
	}
}

func (o *Grower) name() string {
	return ownerName(o.PID, o.Comm) + place(o.ContainerID, o.PodUID, o.SlurmJobID)
}

func (a *assessor) grows(subject, whose string, pid int, trends []Trend, more string) {
	slices.SortStableFunc(trends, func(x, y Trend) int {
		return cmp.Or(cmp.Compare(x.remaining(), y.remaining()), cmp.Compare(y.PerHour, x.PerHour))
	})
	soonest := trends[0]
	var words []string
	for _, t := range trends {
		s := fmt.Sprintf("%s → %s in %s, %s", text.Number(t.From), text.Objects(t.To, t.Type), text.Age(t.Over), text.Pace(t.Rounded()))
		if t.Limit > 0 {
			s += ", " + text.Until(t.TimeToLimit) + " until the limit of " + text.Number(t.Limit)
		}
		words = append(words, s)
	}
	message := whose + ": " + strings.Join(words, "; ") + "."
	if soonest.OnlyGrows {
		message += " The count never went down."
	}
	a.add(observation{
		kind: FindingGrowing, severity: warningIf(soonest.remaining() < a.config.Growing.Within),
		subject: subject, message: message + more, size: 1 / max(soonest.remaining().Hours(), 1e-9),
		replace: []string{"{show}", a.show(soonest.Type, pid), "{type}", soonest.Type},
	})
}

func (t *Trend) remaining() time.Duration {
	if t.Limit == 0 {
		return math.MaxInt64
	}
	return t.TimeToLimit
}

// Rounded returns the pace as an integer.
func (t *Trend) Rounded() int64 { return int64(math.Round(min(t.PerHour, math.MaxInt32*3600))) }
