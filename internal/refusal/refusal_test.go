package refusal_test

import (
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/refusal"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
)

func TestOf(t *testing.T) {
	t.Parallel()
	const device, page = "mlx5_0", 4096
	full := func(device string, current, limit int64) []refusal.Charge {
		return []refusal.Charge{
			{Cgroup: "/a/b", CgroupUse: owner.CgroupUse{Device: "mlx5_0", Resource: "hca_object", Current: 100, Limit: -1}},
			{Cgroup: "/a", CgroupUse: owner.CgroupUse{Device: device, Resource: "hca_object", Current: current, Limit: limit}},
		}
	}
	memlock := func(pinned, limit int64) refusal.Limits { return refusal.Limits{Pinned: pinned, Memlock: limit} }
	few := refusal.Memory{Available: 1 << 20, Total: 2 << 30}
	plenty := refusal.Memory{Available: 1 << 30, Total: 2 << 30}
	free := refusal.Limits{Memlock: -1, Mappings: 100, MaxMappings: 65530}
	for _, c := range []struct {
		name    string
		verb    verbs.Verb
		errno   syscall.Errno
		request refusal.Request
		memory  refusal.Memory
		limits  refusal.Limits
		want    refusal.Cause
		said    string
	}{
		// The first object is refused by the device only if nothing else can be the reason.
		{"no memory", verbs.CreateCQ, syscall.ENOMEM, refusal.Request{}, plenty, free, refusal.Device, "ENOMEM"},
		{"no resources", verbs.CreateQP, syscall.EAGAIN, refusal.Request{}, plenty, free, refusal.Device, ""},
		{"no number", verbs.CreateSRQ, syscall.ENOSPC, refusal.Request{}, plenty, free, refusal.Device, ""},
		{"no number of irdma", verbs.AllocPD, syscall.EOVERFLOW, refusal.Request{}, plenty, free, refusal.Device, ""},
		{"invalid", verbs.CreateCQ, syscall.EINVAL, refusal.Request{}, plenty, free, refusal.Unknown, ""},
		{"busy", verbs.CreateCQ, syscall.EBUSY, refusal.Request{}, plenty, free, refusal.Unknown, ""},
		{"no errno", verbs.CreateCQ, verbs.NoErrno, refusal.Request{}, plenty, free, refusal.Unknown, ""},
		{"gone", verbs.CreateCQ, syscall.ENODEV, refusal.Request{}, plenty, free, refusal.Unknown, ""},
		{"files", verbs.CreateCQ, syscall.EMFILE, refusal.Request{}, plenty, free, refusal.Files, "RLIMIT_NOFILE"},
		{"may lock 64 KiB", verbs.CreateCQ, syscall.ENOMEM, refusal.Request{}, plenty, memlock(0, 64<<10), refusal.Memlock, "64 KiB (RLIMIT_MEMLOCK)"},
		{"may lock hardly more", verbs.CreateQP, syscall.ENOMEM, refusal.Request{}, plenty, memlock(8<<20-page, 8<<20), refusal.Memlock, ""},
		{"may lock enough", verbs.CreateQP, syscall.ENOMEM, refusal.Request{}, plenty, memlock(page, 8<<20), refusal.Device, ""},
		{"domains pin nothing", verbs.AllocPD, syscall.ENOMEM, refusal.Request{}, plenty, memlock(0, 0), refusal.Device, ""},
		{"cgroup out of sight", verbs.CreateCQ, syscall.EAGAIN, refusal.Request{}, plenty, refusal.Limits{Memlock: -1, Hidden: true}, refusal.Unknown, "does not see"},
		{"no cgroup says ENOMEM", verbs.CreateCQ, syscall.ENOMEM, refusal.Request{}, plenty, refusal.Limits{Memlock: -1, Hidden: true, Charges: full(device, 9, 9)}, refusal.Device, ""},
		{"the host has none", verbs.CreateCQ, syscall.ENOMEM, refusal.Request{}, few, free, refusal.Host, "1 MiB available"},

		// Memory is refused by RLIMIT_MEMLOCK exactly if it would be exceeded.
		{"just above the limit", verbs.RegMR, syscall.ENOMEM, refusal.Request{Size: 2 << 20}, plenty, memlock(page, 2<<20), refusal.Memlock, "2 MiB (RLIMIT_MEMLOCK)"},
		{"just within the limit", verbs.RegMR, syscall.ENOMEM, refusal.Request{Size: 2 << 20}, plenty, memlock(page, 2<<20+page), refusal.Device, ""},
		{"may lock nothing", verbs.RegMR, syscall.EPERM, refusal.Request{Size: page}, plenty, memlock(0, 0), refusal.Memlock, "0 bytes (RLIMIT_MEMLOCK)"},
		{"invalid, above the limit", verbs.RegMR, syscall.EINVAL, refusal.Request{Size: 2 << 20}, plenty, memlock(0, page), refusal.Unknown, ""},
		{"cgroup, above the limit", verbs.RegMR, syscall.EAGAIN, refusal.Request{Size: 2 << 20}, plenty, refusal.Limits{Memlock: page, Charges: full(device, 9, 9)}, refusal.Cgroup, "rdma.max"},

		// One more object is refused by the device unless a limit is known to be reached.
		{"memlock", verbs.RegMR, syscall.ENOMEM, refusal.Request{Objects: 100}, plenty, memlock(100*page, 100*page+1), refusal.Memlock, ""},
		{"memlock has room", verbs.RegMR, syscall.ENOMEM, refusal.Request{Objects: 100}, plenty, memlock(100*page, 101*page), refusal.Device, ""},
		{"nothing is pinned", verbs.CreateCQ, syscall.ENOMEM, refusal.Request{Objects: 100}, few, memlock(0, 0), refusal.Device, ""},
		{"cgroup", verbs.AllocPD, syscall.EAGAIN, refusal.Request{Objects: 100}, plenty, refusal.Limits{Memlock: -1, Charges: full(device, 150, 150)}, refusal.Cgroup, "the cgroup /a has 150 of at most 150 hca_object"},
		{"cgroup of another device", verbs.AllocPD, syscall.EAGAIN, refusal.Request{Objects: 100}, plenty, refusal.Limits{Memlock: -1, Charges: full("other", 9, 9)}, refusal.Device, ""},
		{"cgroup has room", verbs.AllocPD, syscall.EAGAIN, refusal.Request{Objects: 100}, plenty, refusal.Limits{Memlock: -1, Charges: full(device, 100, 150)}, refusal.Device, ""},
		{"mappings", verbs.CreateCQ, syscall.ENOMEM, refusal.Request{Objects: 100}, plenty, refusal.Limits{Memlock: -1, Mappings: 65527, MaxMappings: 65530}, refusal.Mappings, "65,530 (vm.max_map_count)"},
		{"mappings have room", verbs.CreateCQ, syscall.EINVAL, refusal.Request{Objects: 100}, plenty, free, refusal.Device, "EINVAL"},
		{"gone after some", verbs.CreateCQ, syscall.ENODEV, refusal.Request{Objects: 100}, plenty, free, refusal.Unknown, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := &verbs.Error{Verb: c.verb, Device: device, Errno: c.errno}
			if got, said := refusal.Of(err, c.request, c.memory, c.limits); got != c.want || !strings.HasPrefix(said, err.Error()) || !strings.Contains(said, c.said) {
				t.Errorf("%s: %s, want %s: %s", got, said, c.want, c.said)
			}
		})
	}
}

func TestSystem(t *testing.T) {
	s := refusal.System{Procfs: "/proc", Cgroup: "/sys/fs/cgroup"}
	m, err := s.Memory()
	if err != nil || m.Available <= 0 || m.Total <= m.Available {
		t.Errorf("%+v, %v", m, err)
	}
	before, err := s.Limits()
	if err != nil || before.Mappings <= 0 || before.MaxMappings <= before.Mappings {
		t.Errorf("%+v, %v", before, err)
	}
	// Neighbours that may be used in different ways are not merged.
	const pages, page = 64, 4096
	area := running.Must(syscall.Mmap(-1, 0, 2*pages*page, syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANON))(t)
	defer func() { _ = syscall.Munmap(area) }()
	for i := range pages {
		running.Check(t, syscall.Mprotect(area[2*i*page:(2*i+1)*page], syscall.PROT_NONE))
	}
	if after, err := s.Limits(); err != nil || after.Mappings < before.Mappings+pages {
		t.Errorf("%d mappings, and %d with %d more: %v", before.Mappings, after.Mappings, 2*pages, err)
	}
	if _, err := (refusal.System{Procfs: t.TempDir()}).Memory(); err == nil {
		t.Error("there is memory without /proc")
	}
}
