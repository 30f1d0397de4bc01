package ceiling_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/ceiling"
	"rdma_exporter/internal/refusal"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

func verbsOf(typ string) (create, destroy verbs.Verb) {
	pair := map[string][2]verbs.Verb{
		"cq": {verbs.CreateCQ, verbs.DestroyCQ}, "qp": {verbs.CreateQP, verbs.DestroyQP}, "srq": {verbs.CreateSRQ, verbs.DestroySRQ},
		"mr": {verbs.RegMR, verbs.DeregMR}, "pd": {verbs.AllocPD, verbs.DeallocPD}, "ah": {verbs.CreateAH, verbs.DestroyAH},
	}[typ]
	return pair[0], pair[1]
}

// host counts the verbs that succeed. Each object takes memory.
type host struct {
	verbs.NopTracer
	calls   map[verbs.Verb]int64
	last    verbs.Verb
	create  verbs.Verb
	cost    int64
	limits  refusal.Limits
	failing error
}

func (h *host) End(call verbs.Call) {
	if call.Errno == 0 {
		h.calls[call.Verb]++
		h.last = call.Verb
	}
}

func (h *host) Memory() (refusal.Memory, error) {
	return refusal.Memory{Available: 1<<30 - h.calls[h.create]*h.cost, Total: 2 << 30}, h.failing
}

func (h *host) Limits() (refusal.Limits, error) { return h.limits, h.failing }

// trial is a search on a simulated device whose verbs take a millisecond.
type trial struct {
	typ    string
	change func(*simulated.DeviceProfile)
	host   host
	within time.Duration
	memory int64
}

// run returns all reports, the last one at the end.
func (c trial) run(t *testing.T) (reports []ceiling.Report, h *host) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		p := simulated.Default()
		d := &p.Devices[0]
		d.DefaultLatency, d.Latency = time.Millisecond, nil
		l := &d.Limits
		l.MaxCQ, l.MaxQP, l.MaxSRQ, l.MaxMR, l.MaxPD, l.MaxAH = 110, 220, 330, 440, 550, 660
		if c.change != nil {
			c.change(d)
		}
		h = &c.host
		h.calls = make(map[verbs.Verb]int64)
		h.create, _ = verbsOf(c.typ)
		if c.within == 0 {
			c.within, c.memory = time.Hour, max(c.memory, 1<<20)
		}
		ceiling.Find(ceiling.Options{
			Provider: simulated.New(p, h), Device: d.Name, Type: c.typ, Within: c.within, Memory: max(c.memory, 1), Host: h,
			Tell: func(r ceiling.Report) { reports = append(reports, r) },
		})
	})
	return reports, h
}

func (h *host) checkBalance(t *testing.T) {
	t.Helper()
	for _, typ := range ceiling.Types() {
		if create, destroy := verbsOf(typ); h.calls[create] != h.calls[destroy] {
			t.Errorf("%s %d times, %s %d times", create, h.calls[create], destroy, h.calls[destroy])
		}
	}
	if h.calls[verbs.OpenDevice] != h.calls[verbs.CloseDevice] || h.calls[verbs.OpenDevice] > 0 && h.last != verbs.CloseDevice {
		t.Errorf("the device was not closed at last, but %s called", h.last)
	}
}

func TestFind(t *testing.T) {
	for typ, want := range map[string]int64{"cq": 110, "qp": 220, "srq": 330, "mr": 440, "pd": 550, "ah": 660} {
		t.Run(typ, func(t *testing.T) {
			reports, h := trial{typ: typ, host: host{limits: refusal.Limits{Memlock: -1}}}.run(t)
			r := reports[len(reports)-1]
			create, _ := verbsOf(typ)
			if r.EndedBy != refusal.Device || r.Objects != want || r.Claimed == nil || *r.Claimed != want || r.Limit != "max_"+typ {
				t.Errorf("%+v", r)
			}
			if r.Errno != "ENOMEM" || r.Verb != string(create) || !strings.Contains(r.Detail, "there are") {
				t.Errorf("verb %q, errno %q, %q", r.Verb, r.Errno, r.Detail)
			}
			if r.GivenBack != ceiling.ByVerbs || r.Left != 0 || r.Seconds <= 0 || r.GivingBackSeconds <= 0 || (r.QPType == "rc") != (typ == "qp") {
				t.Errorf("%+v", r)
			}
			h.checkBalance(t)
			up, down := 0, 0
			for _, r := range reports[:len(reports)-1] {
				if r.EndedBy == "" && r.Objects > 0 {
					up++
				} else if r.Left > 0 && r.Left < want && r.GivenBack == "" {
					down++
				}
			}
			if up < 5 || down < 5 {
				t.Errorf("%d reports while objects were created, %d while they were destroyed", up, down)
			}
		})
	}
}

func TestFindEnds(t *testing.T) {
	for _, c := range []struct {
		name      string
		trial     trial
		end       refusal.Cause
		low, high int64 // objects
		detail    string
	}{
		{"a limit of the process", trial{typ: "cq", host: host{limits: refusal.Limits{Memlock: -1, Mappings: 65530, MaxMappings: 65530}}}, refusal.Mappings, 110, 110, "vm.max_map_count"},
		{"no shared receive queues", trial{typ: "srq", change: func(d *simulated.DeviceProfile) { d.Limits.MaxSRQ = 0 }}, refusal.Unknown, 0, 0, "EOPNOTSUPP"},
		{"no address handles", trial{typ: "ah", change: func(d *simulated.DeviceProfile) {
			d.Faults = []simulated.Fault{{Verb: verbs.CreateAH, Errno: "EOPNOTSUPP"}}
		}}, refusal.Unknown, 0, 0, "EOPNOTSUPP"},
		{"no queue pairs", trial{typ: "qp", change: func(d *simulated.DeviceProfile) {
			d.Faults = []simulated.Fault{{Verb: verbs.CreateQP, Errno: "EOPNOTSUPP"}}
		}}, refusal.Unknown, 0, 0, "EOPNOTSUPP"},
		{"cannot be opened", trial{typ: "cq", change: func(d *simulated.DeviceProfile) { d.Vanish = true }}, refusal.Unknown, 0, 0, "ibv_open_device"},
		{"memory unknown", trial{typ: "cq", host: host{failing: errors.New("no /proc")}}, refusal.Unknown, 0, 0, "no /proc"},
		// The memory is read each 10 ms, which is each 10 objects.
		{"memory", trial{typ: "pd", memory: 1 << 20, host: host{cost: 4096}}, ceiling.EndMemory, 256, 266, "of 1 MiB were used up (--memory)"},
		// A tenth of 2 GiB stays available. That leaves 819 MiB of 1 GiB.
		{"memory of the host", trial{typ: "pd", memory: 4 << 30, host: host{cost: 2 << 20}}, ceiling.EndMemory, 410, 420, "of 2 GiB available"},
		{"time", trial{typ: "pd", within: 100 * time.Millisecond, memory: 1 << 20}, ceiling.EndTime, 80, 100, "100ms were used up (--within)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reports, h := c.trial.run(t)
			r := reports[len(reports)-1]
			if r.EndedBy != c.end || r.Objects < c.low || r.Objects > c.high || !strings.Contains(r.Detail, c.detail) || r.GivenBack != ceiling.ByVerbs || r.Left != 0 {
				t.Errorf("%+v", r)
			}
			h.checkBalance(t)
		})
	}
}

// TestFindLeaves verifies that objects that are not destroyed are counted, and keep the device
// open.
func TestFindLeaves(t *testing.T) {
	for _, c := range []struct {
		name      string
		change    func(*simulated.DeviceProfile)
		low, high int64
		why       string
	}{
		{"refused", func(d *simulated.DeviceProfile) {
			d.Faults = []simulated.Fault{{Verb: verbs.DestroyCQ, After: 3, Times: 2, Errno: "EBUSY"}}
		}, 2, 2, "EBUSY"},
		{"no time", func(d *simulated.DeviceProfile) {
			d.Latency = map[verbs.Verb]time.Duration{verbs.DestroyCQ: 2 * time.Second}
		}, 78, 80, "there was no time to destroy them"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reports, h := trial{typ: "cq", change: c.change}.run(t)
			r := reports[len(reports)-1]
			if r.GivenBack != ceiling.ByKernel || r.Left < c.low || r.Left > c.high || !strings.Contains(r.LeftDetail, c.why) || h.calls[verbs.CloseDevice] != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestAbandoned verifies that the end of a search stays if destroying is given up.
func TestAbandoned(t *testing.T) {
	r := ceiling.Report{Objects: 7, Left: 7, Began: time.Now().Add(-3 * time.Second)}
	r = *r.Abandoned(ceiling.EndInterrupted, "it was interrupted")
	if r.EndedBy != ceiling.EndInterrupted || r.Seconds < 3 || r.Left != 7 || r.GivenBack != ceiling.ByKernel {
		t.Errorf("%+v", r)
	}
	r = ceiling.Report{Objects: 7, Left: 4, Seconds: 2, EndedBy: refusal.Device}
	r = *r.Abandoned(ceiling.EndInterrupted, "it was interrupted")
	if r.EndedBy != refusal.Device || r.Seconds != 2 || r.LeftDetail != "it was interrupted" {
		t.Errorf("%+v", r)
	}
}

func TestReportTexts(t *testing.T) {
	for _, c := range []struct {
		report         ceiling.Report
		progress, text string
	}{
		{
			ceiling.Report{
				Device: "mlx5_0", Type: "qp", QPType: "rc", Objects: 130763, Limit: "max_qp", Claimed: new(int64(262144)), Before: new(int64(2)),
				EndedBy: refusal.Device, Detail: "ENOMEM", Seconds: 31.4, MemoryBytes: 700 << 20, GivenBack: ceiling.ByVerbs, GivingBackSeconds: 12,
			},
			"mlx5_0: 0 RC queue pairs left to destroy",
			`mlx5_0: 130,763 RC queue pairs in addition to 2; the device claims 262,144 (max_qp)
A ceiling: ended by device: ENOMEM
It took 31.4 s and 700 MiB. Everything was destroyed, in 12 s.
`,
		},
		{
			ceiling.Report{
				Device: "rxe0", Type: "ah", Objects: 2, Left: 1, Before: new(int64(0)), MemoryBytes: 4096,
				EndedBy: ceiling.EndInterrupted, Detail: "it was interrupted", Seconds: 1, GivenBack: ceiling.ByKernel, LeftDetail: "it was interrupted",
			},
			"rxe0: 1 address handle left to destroy",
			`rxe0: 2 address handles
No ceiling was found: ended by interrupted: it was interrupted
It took 1 s and 4 KiB. The kernel takes back 1 address handle when this process ends: it was interrupted.
`,
		},
	} {
		if got := c.report.Progress(); got != c.progress {
			t.Errorf("progress %q, want %q", got, c.progress)
		}
		if got := c.report.String(); got != c.text {
			t.Errorf("got\n%s\nwant\n%s", got, c.text)
		}
	}
	creating := ceiling.Report{Device: "rxe0", Type: "srq", Objects: 1, MemoryBytes: 4096}
	if got := creating.Progress(); got != "rxe0: created 1 shared receive queue, 4 KiB" {
		t.Error(got)
	}
}
