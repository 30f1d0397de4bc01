package ceiling_test

import (
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/ceiling"
	"rdma_exporter/verbs"
)

// TestRegistration: memory is refused by RLIMIT_MEMLOCK exactly if it would be above it.
func TestRegistration(t *testing.T) {
	t.Parallel()
	const size = 2 << 20
	plenty := ceiling.Memory{Available: 1 << 30, Total: 2 << 30}
	charged := []ceiling.Charge{{Cgroup: "/a", Device: device, Resource: "hca_object", Current: 9, Limit: 9}}
	for _, c := range []struct {
		name            string
		errno           syscall.Errno
		pinned, memlock int64
		memory          ceiling.Memory
		charges         []ceiling.Charge
		want            ceiling.End
		says            string
	}{
		{"no limit", syscall.ENOMEM, 0, -1, plenty, nil, ceiling.EndDevice, "ENOMEM"},
		{"just above the limit", syscall.ENOMEM, 4096, size, plenty, nil, ceiling.EndMemlock, "2 MiB (RLIMIT_MEMLOCK)"},
		{"just within the limit", syscall.ENOMEM, 4096, size + 4096, plenty, nil, ceiling.EndDevice, "ENOMEM"},
		{"may lock nothing", syscall.EPERM, 0, 0, plenty, nil, ceiling.EndMemlock, "0 bytes (RLIMIT_MEMLOCK)"},
		{"wrong, above the limit", syscall.EINVAL, 0, 4096, plenty, nil, ceiling.EndError, "EINVAL"},
		{"the cgroup", syscall.EAGAIN, 0, 4096, plenty, charged, ceiling.EndCgroup, "rdma.max"},
		{"a cgroup that says ENOMEM", syscall.ENOMEM, 0, -1, plenty, charged, ceiling.EndDevice, "ENOMEM"},
		{"the host has none", syscall.ENOMEM, 0, -1, ceiling.Memory{Available: 1 << 20, Total: 2 << 30}, nil, ceiling.EndMemory, "available"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := &verbs.Error{Verb: verbs.RegMR, Device: device, Errno: c.errno}
			limits := ceiling.Limits{Memlock: c.memlock, Pinned: c.pinned, Mappings: 1, MaxMappings: 65530, Files: 1024, Charges: c.charges}
			if by, said := ceiling.Registration(err, size, c.memory, limits); by != c.want || !strings.Contains(said, c.says) {
				t.Errorf("%s: %s, want %s", by, said, c.want)
			}
		})
	}
}
