//go:build vm

package softroce

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	taking "rdma_exporter/internal/inventory"
	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
)

// inventoried returns an inventory of the active device, by the kernel's own tables and what
// it tells of the processes in them.
func inventoried(t *testing.T, tables taking.Tables, people taking.People) *state.Inventory {
	t.Helper()
	var report bytes.Buffer
	var run state.Run
	err := taking.Run(t.Context(), taking.Options{
		Tables: tables, People: people, Device: active, Config: taking.DefaultConfig(), Exporter: os.Getpid(), Out: wire.NewWriter(&report),
	})
	if err == nil {
		err = wire.Read(&report, &run)
	}
	if err != nil || run.Error != "" || run.Inventory == nil {
		t.Fatalf("the inventory: %v, %s", err, run.Error)
	}
	return run.Inventory
}

// TestGrowth: of three programs the one is found that leaks, in the container of a pod, and
// not the ones that fill a pool and that come and go. The programs, their cgroups and what
// the kernel counts are real, of two hours only the time is not.
func TestGrowth(t *testing.T) {
	tables, err := restrack.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tables.Close() }() // nothing was written
	root, path := pod(t)
	people, err := owner.New("/proc", root)
	if err != nil {
		t.Fatal(err)
	}
	const leaks, fills, churns = "leaks 10 a minute", "fills 400 in 20 minutes, and stays", "comes and goes between 50 and 250, every 14 minutes"
	does := []string{leaks, fills, churns}
	programs := map[string]*running.Held{
		leaks: hold(t, inCgroup(path), "--follow"), fills: hold(t, nil, "--follow"), churns: hold(t, nil, "--follow"),
	}
	holds := map[string]func(minute int) int{
		leaks:  func(minute int) int { return 10 * minute },
		fills:  func(minute int) int { return 20 * min(minute, 20) },
		churns: func(minute int) int { return 50 + 200*max(minute%14-7, 7-minute%14)/7 },
	}
	began := time.Now()
	dev := state.DeviceState{Name: active, Present: true, Info: &state.Device{Limits: []state.Limit{{Name: "max_qp", Value: 10000}}}}
	found, named := make(map[string]string), make(map[string]int)
	for minute := 0; minute <= 70; minute += 2 {
		for _, what := range does {
			p := programs[what]
			if _, err := fmt.Fprintln(p, holds[what](minute)); err != nil {
				t.Fatal(err)
			}
			p.Ready(t)
		}
		taken := began.Add(time.Duration(minute) * time.Minute)
		i := inventoried(t, tables, people)
		var samples []state.Sample
		if dev.Resources != nil {
			samples = dev.Resources.Samples
		}
		dev.Resources = &state.Resources{Inventory: i, Taken: taken, Samples: state.Sampled(samples, i, taken)}
		for _, f := range health.Assess(&dev, health.Default(), health.Past{}) {
			if f.Kind != health.FindingGrowing {
				continue
			}
			for _, what := range does {
				if pid := fmt.Sprintf("pid %d ", programs[what].PID()); strings.Contains(f.Message, pid) {
					named[what]++
					if strings.HasPrefix(f.Subject, pid) && found[what] == "" {
						found[what] = fmt.Sprintf("%s after %d min: %s", f.Severity, minute, f.Message)
					}
				}
			}
		}
	}
	for _, what := range does {
		t.Logf("%s: %s", what, found[what])
	}
	if f := found[leaks]; !strings.HasPrefix(f, "warning after 32 min: ") || !strings.Contains(f, "pod "+podUID) || !strings.Contains(f, containerID[:12]) {
		t.Errorf("the one that leaks: %s", f)
	}
	if named[leaks] == 0 || len(named) != 1 {
		t.Errorf("named, so often: %v", named)
	}
}
