// Package growth says which objects of a device become more and more, and when their limit is reached.
package growth

import (
	"cmp"
	"math"
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// parts is how many parts the samples are divided into. Their minimums are compared. Fluctuation leaves the
	// minimums unchanged, a step raises one of them above the one before, and a leak raises all.
	parts = 6
	// minRises is how many minimums must be above the one before. A starting job raises at most two.
	minRises = 4
	// minPace is the minimum of the last rise as a fraction of the second fastest. A filling pool slows down. The
	// fastest rise may be a step.
	minPace = 0.6
	// minSpan is how long samples must go back for growth to be shown at all.
	minSpan = 10 * time.Minute
	// maxAbsent is in how many consecutive samples an owner may be missing. Only the largest owners are sampled.
	maxAbsent = 3
)

// Config is the minimum growth over at least Window. It is a warning if the limit is reached within Within.
type Config struct {
	Objects int64         `yaml:"objects"`
	Window  time.Duration `yaml:"window"`
	Within  time.Duration `yaml:"within"`
}

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
	// Recent is the last pace. It is 0 once the growth has ended.
	Recent float64 `json:"-"`
}

// Owner is an owner whose objects of one type grow.
type Owner struct {
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
	Growers []Owner `json:"growers,omitempty"`
}

type point struct {
	at      time.Duration
	objects int64
}

// Of returns how objects grow. limit returns the limit of a type. Zero means unknown.
func Of(r *state.Resources, limit func(kind string) int64, c Config) *Growth {
	g := new(Growth)
	if r == nil || len(r.Samples) < parts || r.Inventory == nil {
		return g
	}
	latest := r.Samples[len(r.Samples)-1]
	together := make(map[string]float64) // The pace of all owners.
	trends := func(of func(*state.Sample) (state.Counts, bool)) (all []Trend) {
		for i, kind := range state.ResourceTypes() {
			if t, grows := trendOf(pointsOf(r.Samples, i, of), c); grows {
				t.Type = kind
				t.project(limit(kind), max(t.To, int64(latest.Objects[i])), together[kind])
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
			g.Growers = append(g.Growers, Owner{o.PID, o.Comm, o.ContainerID, o.PodUID, o.SlurmJobID, t})
		}
	}
	slices.SortStableFunc(g.Growers, func(a, b Owner) int {
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
func trendOf(all []point, c Config) (t Trend, grows bool) {
	if len(all) < parts {
		return t, false
	}
	first, last := all[0], all[len(all)-1]
	t = Trend{From: first.objects, To: last.objects, Over: last.at - first.at}
	t.OnlyGrows = slices.IsSortedFunc(all, byCount)
	if t.Over < minSpan || t.To <= t.From {
		return t, false
	}
	var lowest [parts]point
	var ranges [parts]int64
	for i := range lowest {
		part := all[i*len(all)/parts : (i+1)*len(all)/parts]
		low := slices.MinFunc(part, byCount).objects
		lowest[i], ranges[i] = point{part[0].at, low}, slices.MaxFunc(part, byCount).objects-low
	}
	var paces [parts - 1]float64 // In objects per hour.
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
	t.Recent = paces[len(paces)-1]
	slices.Sort(paces[:])
	slices.Sort(ranges[:])
	t.PerHour = paces[len(paces)/2]
	// A count that fluctuates by more than it grows may not grow at all.
	minimum := max(c.Objects, ranges[len(ranges)/2])
	t.Steady = rises >= minRises && t.Recent > 0 && t.Recent >= minPace*paces[len(paces)-2] &&
		t.Over >= c.Window && t.PerHour*t.Over.Hours() >= float64(minimum)
	return t, t.PerHour > 0
}

// project sets the time to a limit at the faster one of two paces. A limit of zero is unknown.
func (t *Trend) project(limit, used int64, pace float64) {
	if limit == 0 {
		return
	}
	hours := max(float64(limit-used), 0) / max(t.PerHour, pace)
	t.Limit, t.TimeToLimit = limit, time.Duration(min(hours*float64(time.Hour), float64(text.Long)))
}

// Remaining returns the time until the limit is reached. It is the longest duration if there is no limit.
func (t *Trend) Remaining() time.Duration {
	if t.Limit == 0 {
		return math.MaxInt64
	}
	return t.TimeToLimit
}

// Rounded returns the pace as an integer.
func (t *Trend) Rounded() int64 { return int64(math.Round(min(t.PerHour, math.MaxInt32*3600))) }
