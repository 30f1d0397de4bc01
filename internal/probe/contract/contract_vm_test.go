//go:build vm

package contract_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/probe/contract"
	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs/ibverbs"
)

// TestRealDevices checks every device of the machine, whose names begin with those of
// their drivers. Each contract must get a verdict and leave nothing, and each violation
// must be a known erratum of the driver.
func TestRealDevices(t *testing.T) {
	devices, err := os.ReadDir("/sys/class/infiniband")
	if err != nil || len(devices) == 0 {
		t.Fatalf("devices %v, %v", devices, err)
	}
	for _, d := range devices {
		name := d.Name()
		t.Run(name, func(t *testing.T) {
			driver := errata.Driver{Name: restrack.Driver(t.Context(), name), Kernel: release(t)}
			if driver.Name == "" || !strings.HasPrefix(name, driver.Name) {
				t.Fatalf("the driver of %s is %q", name, driver.Name)
			}
			var out bytes.Buffer
			err := contract.Run(t.Context(), contract.Options{
				Options: session.Options{
					Provider: ibverbs.New,
					Device:   name, DestroyTimeout: time.Second, Out: wire.NewWriter(&out),
				},
				Driver: driver,
			})
			if err != nil {
				t.Fatal(err)
			}
			r := state.Run{Device: name}
			running.Check(t, wire.Read(&out, &r))
			wantClean(t, r)
			if len(r.Contracts) != len(contract.Catalogue()) {
				t.Errorf("%d verdicts", len(r.Contracts))
			}
			for _, c := range r.Contracts {
				if c.Verdict == state.VerdictViolated && !c.Known {
					t.Errorf("%s is violated, and nothing is known of it", c.Name)
				}
			}
			t.Logf("%d calls\n%s", len(r.Calls), evidence(r))
		})
	}
}

func release(t *testing.T) string {
	t.Helper()
	var name unix.Utsname
	running.Check(t, unix.Uname(&name))
	return unix.ByteSliceToString(name.Release[:])
}
