//go:build !vm

// The machine is slow, and simulated devices need none.

package check

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// profiles are the files of the profiles, by their names.
func profiles(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../../verbs/simulated/profiles/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no profiles: %v", err)
	}
	byName := make(map[string]string)
	for _, file := range files {
		running.DependOn(t, file)
		byName[strings.TrimSuffix(filepath.Base(file), ".yaml")] = file
	}
	return byName
}

// TestSimulated has the exporter audit the simulated device of each profile, all at once,
// for it mostly waits: nothing fails, and nothing is broken that the driver is not known
// for.
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
			text.WriteString("== " + name + "\n" + got[i])
		}
		golden.Check(t, predicted, text.String())
	}
	want := predictions(t)
	if !slices.Equal(slices.Sorted(maps.Keys(want)), names) {
		t.Errorf("%s is not of the same devices as the profiles", predicted)
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			if got[i] != want[name] {
				t.Errorf("the exporter says\n%s\nand should say, by %s,\n%s", got[i], predicted, want[name])
			}
			s := sightOf(name, got[i])
			if !strings.Contains(got[i], "\nrun ok, contracts ok, inventory ok: ok\n") || len(s.violated) > 0 || strings.Contains(got[i], "\n  failed") {
				t.Errorf("the device is not well:\n%s", got[i])
			}
		})
	}
}

// TestSimulatedAgrees holds what is predicted of simulated devices against what was seen
// on paper adapters, on which the vendors' real libraries ran: these are right.
func TestSimulatedAgrees(t *testing.T) {
	want := predictions(t)
	held := 0
	for _, name := range slices.Sorted(maps.Keys(want)) {
		file := filepath.Join("testdata", name+".txt")
		if name == "mana" { // of whose library the older version does nothing
			file = filepath.Join("testdata", "mana@65.txt")
		}
		seen, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		held++
		if string(seen) != want[name] {
			t.Errorf("of the simulated %s it says\n%s\nand of the paper adapter\n%s", name, want[name], seen)
		}
	}
	if held == 0 {
		t.Error("no profile has a paper adapter of its name")
	}
}
