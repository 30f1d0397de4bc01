package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/health/growth"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

func growthOf(dev *state.DeviceState, exhausted []Exhausted, c growth.Config) *growth.Growth {
	return growth.Of(dev.Resources, func(kind string) (limit int64) {
		if dev.Info != nil {
			limit, _ = dev.Info.LimitOf(kind)
		}
		for _, e := range exhausted {
			if e.Type == kind && e.Objects > 0 && (limit == 0 || e.Objects < limit) {
				limit = e.Objects
			}
		}
		return limit
	}, c)
}

func (a *assessor) growing() {
	explained := make(map[string]float64)
	trends := make(map[int][]growth.Trend)
	for _, o := range a.grown.Growers {
		if o.Steady {
			trends[o.PID] = append(trends[o.PID], o.Trend)
			explained[o.Type] += o.PerHour
		}
	}
	for _, o := range a.grown.Growers {
		if of := trends[o.PID]; of != nil {
			a.grows(ownerName(o.PID, o.Comm), growerName(&o), o.PID, of, "")
			delete(trends, o.PID)
		}
	}
	for _, t := range a.grown.All {
		if t.Steady && explained[t.Type] < t.PerHour/2 {
			fastest := ""
			if o := find(a.grown.Growers, func(o *growth.Owner) bool { return o.Type == t.Type && o.Recent > 0 }); o != nil {
				fastest = fmt.Sprintf(" The fastest is %s: %s.", growerName(o), text.Pace(o.Rounded()))
			}
			a.grows(t.Type, "All owners together", 0, []growth.Trend{t}, fastest)
		}
	}
}

func growerName(o *growth.Owner) string {
	return ownerName(o.PID, o.Comm) + place(o.ContainerID, o.PodUID, o.SlurmJobID)
}

func (a *assessor) grows(subject, whose string, pid int, trends []growth.Trend, more string) {
	slices.SortStableFunc(trends, func(x, y growth.Trend) int {
		return cmp.Or(cmp.Compare(x.Remaining(), y.Remaining()), cmp.Compare(y.PerHour, x.PerHour))
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
		kind: FindingGrowing, severity: warningIf(soonest.Remaining() < a.config.Growing.Within),
		subject: subject, message: message + more, size: 1 / max(soonest.Remaining().Hours(), 1e-9),
		replace: []string{"{show}", a.show(soonest.Type, pid), "{type}", soonest.Type},
	})
}
