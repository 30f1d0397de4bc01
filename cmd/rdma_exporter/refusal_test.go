package main

import (
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// What refuses the memory of a simulated device is as its profile says.
func TestRefusedMemory(t *testing.T) {
	t.Parallel()
	p, err := simulated.ParseProfile("profile", []byte("devices: [{name: free, like: sim_ib0}, {name: tight, like: sim_ib0, registration: {memlock_bytes: 65536}}]"))
	if err != nil {
		t.Fatal(err)
	}
	s := settings{Provider: providerSimulated, parsed: p}
	for _, tc := range []struct {
		device string
		errno  syscall.Errno
		size   int
		want   state.RefusedBy
	}{
		{"tight", syscall.ENOMEM, 2 << 20, state.RefusedByMemlock},
		{"tight", syscall.ENOMEM, 4096, state.RefusedByDevice},
		{"tight", syscall.EINVAL, 2 << 20, state.RefusedByDevice},
		{"free", syscall.ENOMEM, 2 << 20, state.RefusedByDevice},
		{"gone", syscall.ENOMEM, 2 << 20, state.RefusedByDevice},
	} {
		refused := &verbs.Error{Verb: verbs.RegMR, Device: tc.device, Errno: tc.errno}
		if by, said := refusedMemory(s, tc.device, refused, tc.size); by != tc.want || !strings.HasPrefix(said, refused.Error()) {
			t.Errorf("%s, %s of %d bytes: %s: %s", tc.device, tc.errno, tc.size, by, said)
		}
	}
}
