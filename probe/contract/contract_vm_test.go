//go:build vm

package contract_test

import (
	"bytes"
	"testing"
	"time"

	"rdma_exporter/probe/contract"
	"rdma_exporter/report"
	"rdma_exporter/verbs/ibverbs"
)

// TestRealDevices judges every device of the machine. Which verdict is right is
// the driver's affair; what is asked here is that each is reached cleanly.
func TestRealDevices(t *testing.T) {
	names, err := ibverbs.New(nil).Devices()
	if err != nil || len(names) == 0 {
		t.Fatalf("devices %v, %v", names, err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := contract.Run(t.Context(), contract.Options{
				Provider: ibverbs.New,
				Device:   name, DestroyTimeout: time.Second, Out: report.NewWriter(&out),
			})
			if err != nil {
				t.Fatal(err)
			}
			r := report.Run{Device: name}
			if err := report.Read(&out, &r); err != nil {
				t.Fatal(err)
			}
			wantClean(t, r)
			if len(r.Contracts) != len(contract.Catalogue()) {
				t.Errorf("%d verdicts", len(r.Contracts))
			}
			t.Logf("%d calls\n%s", len(r.Calls), evidence(r))
		})
	}
}
