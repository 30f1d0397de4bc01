package ceiling_test

import (
	"syscall"
	"testing"

	"rdma_exporter/internal/ceiling"
	"rdma_exporter/verbs"
)

// TestRefusal: a refusal is the device's only where nothing else can be the reason.
func TestRefusal(t *testing.T) {
	t.Parallel()
	plenty := ceiling.Memory{Available: 1 << 30, Total: 2 << 30}
	free := ceiling.Limits{Memlock: -1, Mappings: 100, MaxMappings: 65530, Files: 1024}
	limited := func(change func(*ceiling.Limits)) ceiling.Limits {
		l := free
		change(&l)
		return l
	}
	for _, c := range []struct {
		name   string
		typ    ceiling.Type
		errno  syscall.Errno
		memory ceiling.Memory
		limits ceiling.Limits
		want   ceiling.End
	}{
		{"no memory", ceiling.CQ, syscall.ENOMEM, plenty, free, ceiling.EndDevice},
		{"no resources", ceiling.QP, syscall.EAGAIN, plenty, free, ceiling.EndDevice},
		{"no number", ceiling.SRQ, syscall.ENOSPC, plenty, free, ceiling.EndDevice},
		{"no number of irdma", ceiling.PD, syscall.EOVERFLOW, plenty, free, ceiling.EndDevice},
		{"wrong", ceiling.CQ, syscall.EINVAL, plenty, free, ceiling.EndError},
		{"busy", ceiling.CQ, syscall.EBUSY, plenty, free, ceiling.EndError},
		{"no errno", ceiling.CQ, verbs.NoErrno, plenty, free, ceiling.EndError},
		{"gone", ceiling.CQ, syscall.ENODEV, plenty, free, ceiling.EndError},
		{"files", ceiling.CQ, syscall.EMFILE, plenty, free, ceiling.EndFiles},
		{"mappings", ceiling.CQ, syscall.ENOMEM, plenty, limited(func(l *ceiling.Limits) { l.Mappings = l.MaxMappings }), ceiling.EndMappings},
		{"may lock 64 KiB", ceiling.CQ, syscall.ENOMEM, plenty, limited(func(l *ceiling.Limits) { l.Memlock = 64 << 10 }), ceiling.EndMemlock},
		{"may lock nothing more", ceiling.QP, syscall.ENOMEM, plenty, limited(func(l *ceiling.Limits) { l.Memlock, l.Pinned = 8<<20, 8<<20-4096 }), ceiling.EndMemlock},
		{"may lock enough", ceiling.QP, syscall.ENOMEM, plenty, limited(func(l *ceiling.Limits) { l.Memlock, l.Pinned = 8<<20, 4096 }), ceiling.EndDevice},
		{"domains pin nothing", ceiling.PD, syscall.ENOMEM, plenty, limited(func(l *ceiling.Limits) { l.Memlock = 0 }), ceiling.EndDevice},
		{"cgroup", ceiling.CQ, syscall.EAGAIN, plenty, limited(func(l *ceiling.Limits) {
			l.Charges = []ceiling.Charge{{Cgroup: "/a", Device: device, Resource: "hca_object", Current: 9, Limit: 9}}
		}), ceiling.EndCgroup},
		{"cgroup out of sight", ceiling.CQ, syscall.EAGAIN, plenty, limited(func(l *ceiling.Limits) { l.Hidden = true }), ceiling.EndError},
		{"no cgroup says ENOMEM", ceiling.CQ, syscall.ENOMEM, plenty, limited(func(l *ceiling.Limits) { l.Hidden = true }), ceiling.EndDevice},
		{"the host has none", ceiling.CQ, syscall.ENOMEM, ceiling.Memory{Available: 1 << 20, Total: 2 << 30}, free, ceiling.EndMemory},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := &verbs.Error{Verb: creates(c.typ), Device: device, Errno: c.errno}
			if by, said := ceiling.Refusal(err, c.typ, c.memory, c.limits); by != c.want {
				t.Errorf("%s: %s, want %s", by, said, c.want)
			}
		})
	}
}

// TestTypeOf: of what the kernel does not count no ceiling is learned.
func TestTypeOf(t *testing.T) {
	t.Parallel()
	for _, typ := range ceiling.Types() {
		got, counted := ceiling.TypeOf(creates(typ))
		if counted != (typ != ceiling.AH) || counted && got != typ {
			t.Errorf("%s: %s, %t", typ, got, counted)
		}
	}
	if _, counted := ceiling.TypeOf(verbs.CreateCompChannel); counted {
		t.Error("a channel is counted")
	}
}
