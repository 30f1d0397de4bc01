//go:build !vm

// The machine is slow, and simulated devices need none.

package check

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// TestSimulated has the exporter audit the simulated device of each profile, all at once,
// for it mostly waits: it says what was seen on the paper adapter that the profile is like,
// nothing fails, and nothing is broken that the driver is not known for.
func TestSimulated(t *testing.T) {
	running.DependOn(t, exporterFile)
	files := profiles(t)
	names := slices.Sorted(maps.Keys(files))
	got := make([]string, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			devices, err := audit(t, "--provider=simulated", "--simulated.profile="+files[name])
			if err != nil || len(devices) != 1 {
				t.Errorf("%s: %d devices, want 1: %v", name, len(devices), err)
				return
			}
			got[i] = summary(devices[0])
		})
	}
	all.Wait()
	if golden.Updating() && !t.Failed() {
		var text strings.Builder
		for i, name := range names {
			if paper(t, name) == "" {
				text.WriteString("== " + name + "\n" + got[i])
			}
		}
		golden.Check(t, predicted, text.String())
	}
	want := predictions(t)
	if !slices.Equal(slices.Sorted(maps.Keys(want)), names) {
		t.Errorf("%s and the paper adapters are not of the same devices as the profiles", predicted)
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			if got[i] != want[name] {
				t.Errorf("the exporter says\n%s\nand should say\n%s", got[i], want[name])
			}
			s := sightOf(name, got[i])
			if !strings.Contains(got[i], "\nrun ok, contracts ok, inventory ok: ok\n") || len(s.violated) > 0 || strings.Contains(got[i], "\n  failed") {
				t.Errorf("the device is not well:\n%s", got[i])
			}
		})
	}
}
