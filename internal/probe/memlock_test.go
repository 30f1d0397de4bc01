package probe_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/probe"
	"rdma_exporter/test/running"
)

// limitMemlock gives the process a limit on locked memory, and takes from the calling
// thread what exempts it. The thread ends with the test.
func limitMemlock(t *testing.T, bytes uint64) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	running.Check(t, unix.Capget(&header, &caps[0]))
	caps[0].Effective &^= 1 << unix.CAP_IPC_LOCK
	running.Check(t, unix.Capset(&header, &caps[0]))
	var before unix.Rlimit
	running.Check(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &before))
	running.Check(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: bytes, Max: before.Max}))
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &before); err != nil {
			t.Error(err)
		}
	})
}

// TestMemlock verifies that failures caused by the limit on locked memory mention it, and no
// others.
func TestMemlock(t *testing.T) {
	const (
		some = 64 << 10
		none = 0
	)
	for _, tc := range []struct {
		verb, errno string
		limit       uint64
		exempt      bool // What is locked does not count.
		told        bool
	}{
		{verb: "ibv_create_cq", errno: "ENOMEM", limit: some, told: true},
		{verb: "ibv_create_cq", errno: "ENOMEM", limit: none, told: true},
		{verb: "ibv_create_cq", errno: "ENOMEM", limit: some, exempt: true},
		{verb: "ibv_create_cq", errno: "EPERM", limit: none, told: true},
		{verb: "ibv_create_cq", errno: "EPERM", limit: some},
		{verb: "ibv_create_cq", errno: "EIO", limit: none},
		{verb: "ibv_create_srq", errno: "ENOMEM", limit: some, told: true},
		{verb: "ibv_create_qp", errno: "ENOMEM", limit: some, told: true},
		{verb: "ibv_alloc_pd", errno: "ENOMEM", limit: some},
		{verb: "ibv_create_comp_channel", errno: "ENOMEM", limit: none},
		{verb: "ibv_reg_mr", errno: "ENOMEM", limit: some, told: true},
		{verb: "ibv_reg_mr", errno: "EPERM", limit: none, told: true},
		{verb: "ibv_reg_mr", errno: "EPERM", limit: some},
		{verb: "ibv_reg_mr", errno: "ENOMEM", limit: some, exempt: true},
	} {
		t.Run(fmt.Sprintf("%s %s with %d, exempt %t", tc.verb, tc.errno, tc.limit, tc.exempt), func(t *testing.T) {
			limitMemlock(t, tc.limit)
			p := parse(t, "like: sim_rxe0, faults: [{verb: "+tc.verb+", errno: "+tc.errno+"}]")
			r, _ := probed(t, p, probe.Options{Config: quick(), LocksMemory: !tc.exempt})
			found, hints := 0, 0
			look := func(subject, text, verb string, limit *int64) {
				found++
				hints += strings.Count(text, fmt.Sprintf("RLIMIT_MEMLOCK is %d KiB", tc.limit>>10))
				if told := limit != nil; told != (tc.told && verb == tc.verb) || told && *limit != int64(tc.limit) {
					t.Errorf("%s: %s: limit %v", subject, text, limit)
				}
			}
			for _, p := range r.Probes {
				for _, f := range p.Failures {
					look(f.Subject.String(), f.Message, f.Verb, f.Memlock)
				}
				for _, s := range p.Skips {
					if s.Subject.String() == "message" {
						look(s.Subject.String(), s.Detail, "ibv_reg_mr", s.Memlock)
					}
				}
			}
			want := 0
			if tc.told {
				want = 1
			}
			if found == 0 || hints != want {
				t.Errorf("%d things went wrong, %d of them have a hint", found, hints)
			}
		})
	}
}
