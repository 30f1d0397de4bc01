package health_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/growth"
	"rdma_exporter/internal/state"
)

// life is how many queue pairs the processes of a host have.
type life struct {
	does string
	// of returns the count of the n-th process by the minute. A negative count means that it does not exist.
	of func(n int, minute float64) float64
	// processes is how many there are; 0 for one.
	processes int
	// limit is what the device allows.
	limit int64
	// want is when it is found, and how bad it is.
	want string
}

// lives are what programs do, those that leak first.
func lives() []life {
	// young is a process that begins with what it does, and old one that was there before.
	young := func(f func(float64) float64) func(int, float64) float64 {
		return func(_ int, m float64) float64 {
			if m < 0 {
				return -1
			}
			return f(m)
		}
	}
	old := func(f func(float64) float64) func(int, float64) float64 {
		return func(_ int, m float64) float64 { return 400 + f(max(m, 0)) }
	}
	leak := func(perMinute float64) func(float64) float64 {
		return func(m float64) float64 { return perMinute * m }
	}
	// wave goes up and down between 0 and 1.
	wave := func(m, period float64) float64 { return math.Abs(math.Mod(m/period, 1)*2 - 1) }
	const large, small = 262144, 10000
	return []life{
		{"leaks 10 a minute from its start on, of the 10,000 that are allowed", young(leak(10)), 0, small, "warning after 31 min"},
		{"the same, of 262,144", young(leak(10)), 0, large, "info after 31 min"},
		{"leaks 10 a minute after it has run for hours", old(leak(10)), 0, small, "warning after 39 min"},
		{"creates 400 when it starts, and leaks 10 a minute from then on", young(func(m float64) float64 { return 400*min(m, 1) + 10*m }), 0, small, "warning after 31 min"},
		{"leaks 10 a minute, and has 100 to 300 others that come and go within 7 minutes", young(func(m float64) float64 { return 10*m + 100 + 200*wave(m, 7) }), 0, small, "warning after 31 min"},
		{"leaks 5 at once, every 5 minutes", young(func(m float64) float64 { return 5 * math.Floor(m/5) }), 0, small, "info after 44 min"},
		{"leaks 1 a minute", young(leak(1)), 0, small, "info after 39 min"},
		{"40 processes leak 1 in 4 minutes each", func(_ int, m float64) float64 { return 10 + max(m, 0)/4 }, 40, small, "warning after 44 min"},
		{"leaks 20 at once, every quarter of an hour", young(func(m float64) float64 { return 20 * math.Floor(m/15) }), 0, small, "info after 70 min"},
		{"a pool that fills evenly for 50 minutes, and stays", young(func(m float64) float64 { return 10 * min(m, 50) }), 0, small, "warning after 31 min, until 65 min"},
		{"leaks 1 in 2 minutes", young(leak(0.5)), 0, small, "never"},
		{"a job that starts with 4,000, and stays", young(func(m float64) float64 { return 4000 * min(m/2, 1) }), 0, small, "never"},
		{"three jobs that start 10 minutes after each other, with 1,000 each", func(n int, m float64) float64 {
			if m < float64(10*n) {
				return -1
			}
			return 1000
		}, 3, small, "never"},
		{"a pool that fills for 20 minutes, and stays", young(func(m float64) float64 { return 200 * min(m, 20) }), 0, small, "never"},
		{"a pool that gets ever slower, 63 % full after a quarter of an hour", young(func(m float64) float64 { return 4000 * (1 - math.Exp(-m/15)) }), 0, small, "never"},
		{"goes up and down between 100 and 4,000, every 7 minutes", young(func(m float64) float64 { return 100 + 3900*wave(m, 7) }), 0, small, "never"},
		{"goes up and down between 100 and 4,000, every hour", old(func(m float64) float64 { return 3900 * (1 - math.Cos(2*math.Pi*m/60)) / 2 }), 0, small, "never"},
		{"has between 3,000 and 3,400 at random", old(func(m float64) float64 { return 2600 + 400*math.Abs(math.Mod(math.Sin(math.Floor(m))*43758, 1)) }), 0, small, "never"},
	}
}

// lived says when something is found of a life, and how bad it is. An inventory comes about every minute, for an hour
// before and three after.
func (l life) lived() (found string, first []health.Finding) {
	var samples []state.Sample
	began, seen, last := taken(), -1, -1
	var severity health.Severity
	// The intervals have a jitter, which is the same each time.
	for n, now := 0, -60*time.Minute; now <= 180*time.Minute; n, now = n+1, now+time.Duration(54+n*5%13)*time.Second {
		i := &state.Inventory{Index: 1, PIDsVisible: true, Owners: []state.Owner{holder(7, "steady", "qp", 200)}}
		all := int64(200)
		for p := range max(l.processes, 1) {
			if objects := l.of(p, now.Minutes()); objects >= 0 {
				all += int64(objects)
				o := holder(4711+p, "python3", "qp", int64(objects))
				o.ContainerID, o.PodUID = container, pod
				i.Owners = append(i.Owners, o)
			}
		}
		i.Objects = []state.ObjectCount{{Type: "qp", Owner: state.OwnerUser, Objects: all}}
		samples = state.Sampled(samples, i, began.Add(now))
		s := device(*i, state.Limit{Name: "max_qp", Value: l.limit})
		s.Resources.Samples = samples
		c := health.Default()
		c.NearLimit = health.Levels{Warning: 1, Critical: 1}
		if findings := health.Assess(s, c, health.History{}); len(findings) > 0 {
			if last = int(now.Minutes()); seen < 0 {
				seen, severity, first = last, findings[0].Severity, findings
			}
		}
	}
	switch {
	case seen < 0:
		return "never", nil
	case last < 175:
		return fmt.Sprintf("%s after %d min, until %d min", severity, seen, last), first
	default:
		return fmt.Sprintf("%s after %d min", severity, seen), first
	}
}

func TestGrowing(t *testing.T) {
	for _, l := range lives() {
		t.Run(l.does, func(t *testing.T) {
			if found, first := l.lived(); found != l.want {
				t.Errorf("found %s, want %s: %+v", found, l.want, first)
			}
		})
	}
}

// growing returns a device with growth per minute in the last hour, of one process and of all together.
func growing(limit int64, process, all int64) *state.DeviceState {
	var s *state.DeviceState
	var samples []state.Sample
	for minute := int64(0); minute <= 60; minute += 2 {
		o := state.Owner{PID: 4711, Comm: "trainer", ContainerID: container, PodUID: pod, Objects: []state.TypeCount{
			{Type: "qp", Objects: 10 + process*minute}, {Type: "cq", Objects: 5 + process*minute/2}, {Type: "mr", Objects: 7},
		}}
		i := state.Inventory{
			Index: 1, PIDsVisible: true, Owners: []state.Owner{o, holder(77, "worker", "qp", 10)},
			Objects: []state.ObjectCount{{Type: "qp", Owner: state.OwnerUser, Objects: 100 + all*minute}, {Type: "mr", Owner: state.OwnerUser, Objects: 7}},
		}
		samples = state.Sampled(samples, &i, taken().Add(time.Duration(minute-60)*time.Minute))
		s = device(i, state.Limit{Name: "max_qp", Value: limit})
	}
	s.Resources.Samples = samples
	return s
}

func TestGrowingMessage(t *testing.T) {
	r := recording(t)
	r.add("nothing grows", growing(2000, 0, 0))
	r.add("a process", growing(2000, 10, 10))
	r.add("a process among others", growing(2000, 2, 10))
	r.add("the limit is far", growing(1<<40, 10, 10))
	r.add("at the limit", growing(650, 10, 10))
	r.add("no limit", growing(0, 10, 10))
}

// Where all owners together grow, the process is named that does, and not a pool that has grown faster and stays.
func TestGrowingNamesWhoGrows(t *testing.T) {
	s := growing(100000, 2, 20)
	// What was filled within 40 minutes: at its median it is the faster one.
	for i := range s.Resources.Samples {
		for n := range s.Resources.Samples[i].Owners {
			if o := &s.Resources.Samples[i].Owners[n]; o.PID == 77 {
				o.Objects[2] = int32(10 + 20*min(i, 20))
			}
		}
	}
	var got []string
	for _, f := range assess(s) {
		if f.Kind == health.FindingGrowing && f.Subject == "qp" {
			got = append(got, f.Message)
		}
	}
	if len(got) != 1 || !strings.HasSuffix(got[0], " The fastest is pid 4711 (trainer), container 3f2a1b2c3d4e, pod "+pod+": 2 a minute.") {
		t.Errorf("got %q", got)
	}
}

// A process that is not among the largest owners for a moment is the same one after; one whose number comes again
// later is another.
func TestGrowingGaps(t *testing.T) {
	for gap, want := range map[int]bool{0: true, 1: true, 3: true, 5: false} {
		s := growing(2000, 10, 0)
		for i := range gap {
			s.Resources.Samples[15+i].Owners = nil
		}
		g := growthOf(s, growth.Config{Objects: 400, Window: 30 * time.Minute})
		if len(g.Growers) == 0 || g.Growers[0].Steady != want {
			t.Errorf("missing %d times: %+v", gap, g.Growers)
		}
	}
}

// A process that has the number of one that ended a moment before is another one, whatever its command: what it
// starts with has not grown from what the other had.
func TestGrowingNumberUsedAgain(t *testing.T) {
	for _, started := range []uint32{0, 700} {
		s := growing(2000, 10, 0)
		s.Resources.Inventory.Owners[0].Started = 900
		for i := range s.Resources.Samples {
			owners := s.Resources.Samples[i].Owners
			for n := range owners {
				if owners[n].PID == 4711 && i < 15 {
					owners[n].Started = started
				} else if owners[n].PID == 4711 {
					owners[n].Started = 900
				}
			}
		}
		g := growthOf(s, growth.Config{Objects: 100, Window: 45 * time.Minute})
		if len(g.Growers) == 0 || g.Growers[0].Steady != (started == 0) {
			t.Errorf("the one before was started at %d: %+v", started, g.Growers)
		}
	}
}

// TestGrowthOfHost verifies that growth follows the inventories, the configuration and the refusals in the history.
func TestGrowthOfHost(t *testing.T) {
	j := newEvaluator()
	growth := func(s *state.DeviceState) *growth.Growth {
		return j.Evaluate(&state.Snapshot{Devices: []state.DeviceState{*s}}).Devices[0].Growth
	}
	if g := growth(growing(2000, 0, 0)); len(g.Growers) != 0 || len(g.All) != 0 {
		t.Errorf("nothing grows, but %+v", g)
	}
	s := growing(2000, 10, 10)
	before := growth(s)
	if len(before.Growers) != 2 || !before.Growers[0].Steady || len(before.All) != 1 {
		t.Errorf("after another inventory: %+v", before)
	}
	past := j.History()
	past.Exhausted["rxe0"] = []health.Exhausted{{Type: "qp", Objects: 1400, At: taken()}, {Type: "cq", Objects: 1 << 40, At: taken()}}
	learned := health.New(health.Default(), past).Evaluate(&state.Snapshot{Devices: []state.DeviceState{*s}}).Devices[0].Growth
	if g := learned.Growers; g[0].Limit != 1400 || g[1].Limit != 1<<40 || learned.All[0].Limit != 1400 || before.Growers[0].Limit != 2000 || before.Growers[1].Limit != 0 {
		t.Errorf("where the device ended, it expects %+v", learned)
	}
	c := health.Default()
	c.Growing.Objects = 10000
	j.Configure(c)
	if after := growth(s); len(after.Growers) != 2 || after.Growers[0].Steady {
		t.Errorf("after another configuration: %+v", after)
	}
}

func growthOf(s *state.DeviceState, c growth.Config) *growth.Growth {
	return health.New(health.Config{Growing: c}, health.History{}).Evaluate(snapshot(*s)).Devices[0].Growth
}
