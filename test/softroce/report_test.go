//go:build vm

package softroce

import (
	"bytes"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
)

// probeByHand runs the child's command as a person would, but for the deadline of 5 s
// for events and the budget of 20 s for all of them, so that none is missed or left out
// while the machine stands still.
func probeByHand(t testing.TB, device string) (*exec.Cmd, []byte) {
	t.Helper()
	cmd := exec.Command(exporterFile, "probe", "--device="+device)
	cmd.Stdin = strings.NewReader(`{"settings": {"probe": {"notification": {"deadline": 5000000000, "budget": 20000000000}}}}`)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, &stdout, &stderr)
	}
	if stderr.Len() > 0 {
		t.Errorf("standard error of the child:\n%s", &stderr)
	}
	return cmd, stdout.Bytes()
}

// TestProbeByHand verifies that the memory of objects is the same in each run.
func TestProbeByHand(t *testing.T) {
	before := rawResources(t)
	const times = 5
	var first map[string]state.Memory
	for i := range times {
		_, out := probeByHand(t, active)
		var run state.Run
		running.Check(t, wire.Read(bytes.NewReader(out), &run))
		if run.Error != "" || run.Info == nil || len(run.Probes) != 6 || len(run.Undestroyed) != 0 {
			t.Errorf("the report says %+v", run)
		}
		memory := make(map[string]state.Memory)
		for _, p := range run.Probes {
			if p.Status != state.StatusOK {
				t.Errorf("probe %s: %s, %v", p.Name, p.Status, p.Failures)
			}
			for _, m := range p.Memory {
				memory[strings.TrimSpace(m.Object+" "+m.Profile)] = m
			}
		}
		// The kernel allocates 64 or 128 bytes for each entry, and maps them.
		if m := memory["cq large"]; m.Virtual < 1<<20 {
			t.Errorf("a CQ of 8191 entries costs %d bytes", m.Virtual)
		}
		if i == 0 {
			first = memory
			t.Logf("objects cost %v", memory)
			continue
		}
		if !reflect.DeepEqual(memory, first) {
			t.Errorf("run %d: objects cost\n%v\nand in the first run\n%v", i+1, memory, first)
		}
	}
	awaitHeld(t, before, rawResources)
}
