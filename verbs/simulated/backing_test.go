package simulated_test

import (
	"errors"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// What can be registered is as the profile says, and counted for all regions together.
func TestRegistration(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	for _, tc := range []struct {
		name    string
		device  string
		backing verbs.Backing
		size    int
		held    int // bytes of a region that is there already
		errno   syscall.Errno
		none    bool
	}{
		{name: "nothing said", backing: verbs.BackingPages, size: verbs.HugePageSize},
		{name: "no huge page", backing: verbs.BackingHugePages, size: verbs.HugePageSize, none: true},
		{name: "the last huge page", device: ", registration: {huge_pages: 1}", backing: verbs.BackingHugePages, size: verbs.HugePageSize, none: true},
		{name: "a huge page", device: ", registration: {huge_pages: 2}", backing: verbs.BackingHugePages, size: verbs.HugePageSize},
		{name: "no dma-buf", backing: verbs.BackingDMABuf, size: verbs.HugePageSize, errno: syscall.EOPNOTSUPP},
		{name: "a dma-buf", device: ", registration: {dmabuf: true}", backing: verbs.BackingDMABuf, size: verbs.HugePageSize},
		{name: "within the limit", device: ", registration: {memlock_bytes: 65536}", backing: verbs.BackingPages, size: 64 * kib},
		{name: "above the limit", device: ", registration: {memlock_bytes: 65536}", backing: verbs.BackingPages, size: 64*kib + 1, errno: syscall.ENOMEM},
		{name: "above it together", device: ", registration: {memlock_bytes: 65536}", backing: verbs.BackingPages, size: 64 * kib, held: 1, errno: syscall.ENOMEM},
		{name: "a fault of long ones", device: ", faults: [{verb: ibv_reg_mr, when: {above: {length: 4096}}, errno: EINVAL}]", backing: verbs.BackingPages, size: 4097, errno: syscall.EINVAL},
		{name: "and of no short ones", device: ", faults: [{verb: ibv_reg_mr, when: {above: {length: 4096}}, errno: EINVAL}]", backing: verbs.BackingPages, size: 4096},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, err := simulated.ParseProfile([]byte("devices: [{name: dev, like: sim_rxe0, default_latency: 0s, latency: {}" + tc.device + "}]"))
			if err != nil {
				t.Fatal(err)
			}
			d := must[verbs.Device](t)(simulated.New(p, verbs.NopTracer{}).Open("dev"))
			pd := must[verbs.PD](t)(d.AllocPD())
			if tc.held > 0 {
				held := must[verbs.MR](t)(pd.RegMR(tc.held, 0))
				defer func() { ok(t, held.Close()) }()
			}
			m, err := pd.RegMRBackedBy(tc.backing, tc.size, verbs.AccessLocalWrite)
			switch {
			case tc.none:
				if !errors.Is(err, verbs.ErrNoBacking) {
					t.Errorf("got %v", err)
				}
			case tc.errno != 0:
				wantErrno(t, err, tc.backing.Verb(), tc.errno)
			case err != nil:
				t.Error(err)
			default:
				ok(t, m.Close())
			}
		})
	}
}
