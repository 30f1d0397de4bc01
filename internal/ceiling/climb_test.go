package ceiling_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/ceiling"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

const device = "sim_rxe0"

// provider returns a provider of a device that takes no time, is as change makes it, and
// tells tracer of each verb.
func provider(change func(*simulated.DeviceProfile), tracer verbs.Tracer) verbs.Provider {
	p := simulated.Default()
	d := &p.Devices[0]
	d.DefaultLatency, d.Latency = 0, nil
	if change != nil {
		change(d)
	}
	return simulated.New(p, tracer)
}

// host is a host on which each object of the climb costs this and that.
type host struct {
	count   *count
	cost    ceiling.Memory // of an object
	limits  ceiling.Limits
	failing error
}

func (h *host) Memory() (ceiling.Memory, error) {
	n := h.count.objects()
	return ceiling.Memory{
		Resident: 10<<20 + n*h.cost.Resident, Locked: n * h.cost.Locked,
		Available: 1<<30 - n*h.cost.Available, Total: 2 << 30,
	}, h.failing
}

func (h *host) Limits() (ceiling.Limits, error) { return h.limits, h.failing }

// count counts what is created and destroyed, in the order of the verbs.
type count struct {
	verbs.NopTracer
	created map[verbs.Verb]int64
	ended   []verbs.Verb
	of      verbs.Verb
}

func (c *count) End(call verbs.Call) {
	if call.Errno != 0 {
		return
	}
	c.created[call.Verb]++
	if strings.Contains(string(call.Verb), "destroy") || strings.Contains(string(call.Verb), "de") {
		c.ended = append(c.ended, call.Verb)
	}
}

func (c *count) objects() int64 { return c.created[c.of] }

// pairs are the verbs that create, and those that destroy what they did.
func pairs() map[verbs.Verb]verbs.Verb {
	return map[verbs.Verb]verbs.Verb{
		verbs.CreateCQ: verbs.DestroyCQ, verbs.CreateQP: verbs.DestroyQP, verbs.CreateSRQ: verbs.DestroySRQ,
		verbs.RegMR: verbs.DeregMR, verbs.AllocPD: verbs.DeallocPD, verbs.CreateAH: verbs.DestroyAH, verbs.OpenDevice: verbs.CloseDevice,
	}
}

// creates is the verb that creates objects of a type.
func creates(t ceiling.Type) verbs.Verb {
	return map[ceiling.Type]verbs.Verb{
		ceiling.CQ: verbs.CreateCQ, ceiling.QP: verbs.CreateQP, ceiling.SRQ: verbs.CreateSRQ,
		ceiling.MR: verbs.RegMR, ceiling.PD: verbs.AllocPD, ceiling.AH: verbs.CreateAH,
	}[t]
}

// climbing is a climb in a test. What is zero is of no matter.
type climbing struct {
	typ    ceiling.Type
	change func(*simulated.DeviceProfile)
	host   host
	within time.Duration
	memory int64
	// step is by how much the clock goes on each time that it is asked.
	step time.Duration
	// slower is by how much more it does once everything is being given back.
	slower time.Duration
	tell   func(ceiling.Report)
}

func (c climbing) run() (ceiling.Report, *count) {
	seen := &count{created: make(map[verbs.Verb]int64), of: creates(c.typ)}
	c.host.count = seen
	config := ceiling.DefaultConfig()
	config.Type = c.typ
	if c.within > 0 {
		config.Within = c.within
	}
	if c.memory > 0 {
		config.Memory = c.memory
	}
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	report := ceiling.Climb(ceiling.Options{
		Provider: provider(c.change, seen), Device: device, Config: config, Host: &c.host,
		Now: func() time.Time { now = now.Add(c.step); return now },
		Tell: func(r ceiling.Report) {
			if r.Phase == ceiling.PhaseGivingBack {
				c.step, c.slower = c.step+c.slower, 0
			}
			if c.tell != nil {
				c.tell(r)
			}
		},
	})
	return report, seen
}

// limited gives each type another ceiling, and leaves room for what objects need.
func limited(d *simulated.DeviceProfile) {
	l := &d.Limits
	l.MaxCQ, l.MaxQP, l.MaxSRQ, l.MaxMR, l.MaxPD, l.MaxAH = 11, 22, 33, 44, 55, 66
}

// Each type is climbed to what the device has, and all is given back.
func TestClimb(t *testing.T) {
	for typ, want := range map[ceiling.Type]int64{ceiling.CQ: 11, ceiling.QP: 22, ceiling.SRQ: 33, ceiling.MR: 44, ceiling.PD: 55, ceiling.AH: 66} {
		t.Run(string(typ), func(t *testing.T) {
			var told []ceiling.Report
			r, seen := climbing{typ: typ, change: limited, host: host{limits: ceiling.Limits{Memlock: -1}}, tell: func(r ceiling.Report) { told = append(told, r) }}.run()
			if r.EndedBy != ceiling.EndDevice || r.Objects != want || r.Claimed == nil || *r.Claimed != want || r.Limit != "max_"+string(typ) {
				t.Errorf("%+v", r)
			}
			if r.Errno != "ENOMEM" || r.Verb != string(creates(typ)) || !strings.Contains(r.Detail, "there are") {
				t.Errorf("verb %q, errno %q, %q", r.Verb, r.Errno, r.Detail)
			}
			if r.Phase != ceiling.PhaseEnded || r.GivenBack != ceiling.ByVerbs || r.Left != 0 || !r.EndedBy.Found() {
				t.Errorf("%+v", r)
			}
			if (r.QPType == "rc") != (typ == ceiling.QP) {
				t.Errorf("queue pairs of type %q", r.QPType)
			}
			for create, destroy := range pairs() {
				if seen.created[create] != seen.created[destroy] {
					t.Errorf("%s %d times, %s %d times", create, seen.created[create], destroy, seen.created[destroy])
				}
			}
			if last := seen.ended[len(seen.ended)-1]; last != verbs.CloseDevice {
				t.Errorf("the last of all was %s", last)
			}
			var phases []ceiling.Phase
			for _, r := range told {
				if len(phases) == 0 || phases[len(phases)-1] != r.Phase {
					phases = append(phases, r.Phase)
				}
			}
			// No time has passed, and yet it was told of half of them on the way.
			if !slices.ContainsFunc(told, func(r ceiling.Report) bool {
				return r.Phase == ceiling.PhaseClimbing && r.EndedBy == "" && 2*r.Objects >= want
			}) {
				t.Errorf("told too little on the way: %+v", told)
			}
			if len(phases) != 3 || phases[0] != ceiling.PhaseClimbing || phases[2] != ceiling.PhaseEnded || told[len(told)-1] != r {
				t.Errorf("told of %v, %+v", phases, told)
			}
		})
	}
}

// What ended the climb is told apart.
func TestClimbEnds(t *testing.T) {
	const page = 4096
	fault := func(v verbs.Verb, errno string) func(*simulated.DeviceProfile) {
		return func(d *simulated.DeviceProfile) {
			d.Faults = append(d.Faults, simulated.Fault{Verb: v, After: 100, Errno: errno})
		}
	}
	for _, c := range []struct {
		name  string
		climb climbing
		end   ceiling.End
		// least and most objects.
		least, most int64
		detail      string
	}{
		{
			"memlock",
			climbing{typ: ceiling.MR, change: fault(verbs.RegMR, "ENOMEM"), host: host{limits: ceiling.Limits{Pinned: 100 * page, Memlock: 100*page + 1}}},
			ceiling.EndMemlock, 100, 100, "RLIMIT_MEMLOCK",
		},
		{
			"memlock has room",
			climbing{typ: ceiling.MR, change: fault(verbs.RegMR, "ENOMEM"), host: host{limits: ceiling.Limits{Pinned: 100 * page, Memlock: 101 * page}}},
			ceiling.EndDevice, 100, 100, "",
		},
		{
			"nothing is pinned",
			climbing{typ: ceiling.CQ, change: fault(verbs.CreateCQ, "ENOMEM"), host: host{limits: ceiling.Limits{Memlock: 0}}},
			ceiling.EndDevice, 100, 100, "",
		},
		{
			"memlock at the first",
			climbing{
				typ: ceiling.MR, change: func(d *simulated.DeviceProfile) {
					d.Faults = []simulated.Fault{{Verb: verbs.RegMR, Errno: "EPERM"}}
				}, host: host{limits: ceiling.Limits{Memlock: 0}},
			},
			ceiling.EndMemlock, 0, 0, "RLIMIT_MEMLOCK",
		},
		{
			"cgroup",
			climbing{typ: ceiling.PD, change: fault(verbs.AllocPD, "EAGAIN"), host: host{limits: ceiling.Limits{Memlock: -1, Charges: []ceiling.Charge{
				{Cgroup: "/a/b", Device: device, Resource: "hca_object", Current: 100, Limit: -1},
				{Cgroup: "/a", Device: "other", Resource: "hca_object", Current: 9, Limit: 9},
				{Cgroup: "/a", Device: device, Resource: "hca_object", Current: 150, Limit: 150},
			}}}},
			ceiling.EndCgroup, 100, 100, "the cgroup /a 150 of hca_object, and counts 150",
		},
		{
			"EAGAIN of the device",
			climbing{typ: ceiling.PD, change: fault(verbs.AllocPD, "EAGAIN"), host: host{limits: ceiling.Limits{Memlock: -1, Charges: []ceiling.Charge{
				{Cgroup: "/a", Device: device, Resource: "hca_object", Current: 100, Limit: 150},
			}}}},
			ceiling.EndDevice, 100, 100, "EAGAIN",
		},
		{"files", climbing{typ: ceiling.AH, change: func(d *simulated.DeviceProfile) {
			d.Faults = []simulated.Fault{{Verb: verbs.CreateAH, After: 5, Errno: "EMFILE"}}
		}, host: host{limits: ceiling.Limits{Memlock: -1, Files: 1024}}}, ceiling.EndFiles, 4, 4, "1024 files (RLIMIT_NOFILE)"},
		{
			"mappings",
			climbing{typ: ceiling.CQ, change: fault(verbs.CreateCQ, "ENOMEM"), host: host{limits: ceiling.Limits{Memlock: -1, Mappings: 65530, MaxMappings: 65530}}},
			ceiling.EndMappings, 100, 100, "vm.max_map_count",
		},
		{
			"an errno of its own",
			climbing{typ: ceiling.CQ, change: fault(verbs.CreateCQ, "EINVAL"), host: host{limits: ceiling.Limits{Memlock: -1, Mappings: 100, MaxMappings: 65530}}},
			ceiling.EndDevice, 100, 100, "EINVAL",
		},
		{"gone", climbing{typ: ceiling.CQ, change: fault(verbs.CreateCQ, "ENODEV")}, ceiling.EndError, 100, 100, "ENODEV"},
		{"none", climbing{typ: ceiling.SRQ, change: func(d *simulated.DeviceProfile) { d.Limits.MaxSRQ = 0 }}, ceiling.EndError, 0, 0, "EOPNOTSUPP"},
		{
			"no room at all",
			climbing{typ: ceiling.CQ, change: func(d *simulated.DeviceProfile) {
				d.Faults = []simulated.Fault{{Verb: verbs.CreateCQ, Errno: "ENOMEM"}}
			}, host: host{limits: ceiling.Limits{Memlock: -1}}},
			ceiling.EndDevice, 0, 0, "ENOMEM",
		},
		{"cannot be opened", climbing{typ: ceiling.CQ, change: func(d *simulated.DeviceProfile) { d.Vanish = true }}, ceiling.EndError, 0, 0, "ibv_open_device"},
		{"memory unknown", climbing{typ: ceiling.CQ, host: host{failing: errors.New("no /proc")}}, ceiling.EndError, 0, 0, "no /proc"},
		{"resident", climbing{typ: ceiling.PD, memory: 1 << 20, host: host{cost: ceiling.Memory{Resident: page}}}, ceiling.EndMemory, 256, 256, "1 MiB of 1 MiB were used up (--memory)"},
		{"locked", climbing{typ: ceiling.PD, memory: 1 << 20, host: host{cost: ceiling.Memory{Locked: page, Resident: 1}}}, ceiling.EndMemory, 256, 256, "--memory"},
		{"of the kernel", climbing{typ: ceiling.PD, memory: 1 << 20, host: host{cost: ceiling.Memory{Available: page}}}, ceiling.EndMemory, 256, 256, "--memory"},
		{"large objects", climbing{typ: ceiling.PD, memory: 8 << 20, host: host{cost: ceiling.Memory{Available: 1 << 20}}}, ceiling.EndMemory, 8, 8, "--memory"},
		// A tenth of 2 GiB stays: some 819 MiB of the 1 GiB that is available.
		{"of the host", climbing{typ: ceiling.PD, memory: 4 << 30, host: host{cost: ceiling.Memory{Available: 1 << 20}}}, ceiling.EndMemory, 819, 825, "10 % of its 2 GiB are left alone"},
		{"time", climbing{typ: ceiling.PD, within: time.Second, step: 10 * time.Millisecond}, ceiling.EndTime, 90, 100, "1s were used up (--within)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, seen := c.climb.run()
			if r.EndedBy != c.end || r.Objects < c.least || r.Objects > c.most || !strings.Contains(r.Detail, c.detail) {
				t.Errorf("ended by %s at %d: %q; want %s at %d to %d, %q", r.EndedBy, r.Objects, r.Detail, c.end, c.least, c.most, c.detail)
			}
			if r.GivenBack != ceiling.ByVerbs || r.Left != 0 {
				t.Errorf("%+v", r)
			}
			for create, destroy := range pairs() {
				if seen.created[create] != seen.created[destroy] {
					t.Errorf("%s %d times, %s %d times", create, seen.created[create], destroy, seen.created[destroy])
				}
			}
		})
	}
}

// What cannot be destroyed is told, and left to the end of the process.
func TestClimbLeft(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		r, seen := climbing{typ: ceiling.CQ, change: func(d *simulated.DeviceProfile) {
			limited(d)
			d.Faults = []simulated.Fault{{Verb: verbs.DestroyCQ, After: 3, Times: 2, Errno: "EBUSY"}}
		}}.run()
		if r.EndedBy != ceiling.EndDevice || r.GivenBack != ceiling.ByKernel || r.Left != 2 || !strings.Contains(r.LeftDetail, "EBUSY") {
			t.Errorf("%+v", r)
		}
		if n := seen.created[verbs.CloseDevice]; n != 0 {
			t.Error("the device was closed")
		}
	})
	t.Run("no time", func(t *testing.T) {
		r, _ := climbing{typ: ceiling.PD, change: limited, slower: 2 * time.Second}.run()
		if r.GivenBack != ceiling.ByKernel || r.Left == 0 || r.Left >= r.Objects || r.LeftDetail != "there was no time to destroy them" {
			t.Errorf("%+v", r)
		}
	})
}

// A report that was cut short keeps what was known, and says why.
func TestCut(t *testing.T) {
	began := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	r := ceiling.Report{Device: device, Type: ceiling.CQ, Phase: ceiling.PhaseClimbing, Objects: 7, Left: 7, Began: began}
	r.Cut(ceiling.EndInterrupted, "it was interrupted", ceiling.ByKernel, began.Add(3*time.Second))
	if r.EndedBy != ceiling.EndInterrupted || r.Seconds != 3 || r.Left != 7 || r.Phase != ceiling.PhaseEnded || r.EndedBy.Found() {
		t.Errorf("%+v", r)
	}
	r = ceiling.Report{Device: device, Type: ceiling.CQ, Phase: ceiling.PhaseGivingBack, Objects: 7, Left: 4, Began: began, Seconds: 2, EndedBy: ceiling.EndDevice}
	r.Cut(ceiling.EndInterrupted, "it was interrupted", ceiling.ByKernel, began.Add(3*time.Second))
	if r.EndedBy != ceiling.EndDevice || r.Seconds != 2 || r.Left != 4 || r.LeftDetail != "it was interrupted" {
		t.Errorf("%+v", r)
	}
}

// The process of a test has memory, and limits.
func TestSystem(t *testing.T) {
	s := ceiling.System{Procfs: "/proc", Cgroup: "/sys/fs/cgroup"}
	m, err := s.Memory()
	if err != nil || m.Resident <= 0 || m.Available <= 0 || m.Total <= m.Available {
		t.Errorf("%+v, %v", m, err)
	}
	before, err := s.Limits()
	if err != nil || before.Mappings <= 0 || before.MaxMappings <= before.Mappings || before.Files <= 0 {
		t.Errorf("%+v, %v", before, err)
	}
	// Neighbours that may be used in different ways are not merged.
	const pages, page = 64, 4096
	area, err := syscall.Mmap(-1, 0, 2*pages*page, syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(area) }()
	for i := range pages {
		if err := syscall.Mprotect(area[2*i*page:(2*i+1)*page], syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	after, err := s.Limits()
	if err != nil || after.Mappings < before.Mappings+pages {
		t.Errorf("%d mappings, and %d with %d more: %v", before.Mappings, after.Mappings, 2*pages, err)
	}
	if _, err := (ceiling.System{Procfs: t.TempDir()}).Memory(); err == nil {
		t.Error("there is memory without /proc")
	}
}

func TestValidate(t *testing.T) {
	good := ceiling.DefaultConfig()
	good.Type = ceiling.QP
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*ceiling.Config){
		"--type":   func(c *ceiling.Config) { c.Type = "mw" },
		"--within": func(c *ceiling.Config) { c.Within = 0 },
		"--memory": func(c *ceiling.Config) { c.Memory = -1 },
	} {
		bad := good
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.HasPrefix(err.Error(), want+" is ") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
