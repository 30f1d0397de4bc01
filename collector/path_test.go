package collector_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/state"
)

// pathsOf returns a path of each result to the two devices of each peer.
func pathsOf() []state.PathState {
	var all []state.PathState
	for i, result := range state.PathResults() {
		p := state.PathState{At: started(), Path: state.Path{
			Peer: fmt.Sprintf("node%d:10879", 2+i/2), PeerDevice: fmt.Sprint("mlx5_", i%2), Result: result,
			Rail: "0", ToR: "a", PeerRail: fmt.Sprint(i % 2), PeerToR: "b",
		}}
		if p.Tried() {
			p.Sent, p.Flows, p.MTU, p.Clock = 33, 16, 4096, "device"
		}
		if !p.Failed() {
			p.RTTMin, p.RTTMedian, p.RTTMax = 3*time.Microsecond, 4*time.Microsecond, 9*time.Microsecond
		} else if p.Tried() {
			p.LostForward, p.LostReverse, p.FlowsFailed, p.Suspect = 3, 1, 2, state.SuspectPath
		}
		p.AllSent, p.AllForward, p.AllReverse = 2*uint64(p.Sent), uint64(p.LostForward), uint64(p.LostReverse)
		all = append(all, p)
	}
	return all
}

func askRun(device string, p *state.Path) *state.Run {
	return &state.Run{Kind: state.KindAsk, Device: device, Started: started(), Outcome: state.OutcomeOK, Path: p}
}

// paths is a device with a path of each result.
func paths() scene {
	s := stateOf(bare("mlx5_0"))
	s.Paths = pathsOf()
	out := sceneOf("libibverbs", s, bare("mlx5_0"), askRun("mlx5_0", nil))
	for i := range s.Paths[:7] {
		out.runs = append(out.runs, askRun("mlx5_0", &s.Paths[i].Path))
	}
	out.sessions = map[string]uint64{"granted": 7, "refused": 0}
	return out
}

// TestPathBudget verifies that a pair has at most 12 series, those of its device included, as long as
// no more results occurred than the device has pairs. A device without pairs has none.
func TestPathBudget(t *testing.T) {
	t.Parallel()
	all := pathsOf()
	for _, pairs := range [][]state.PathState{all[:1], {all[0], all[9], all[10]}} {
		for i := range pairs {
			pairs[i].Peer, pairs[i].RTTMin, pairs[i].RTTMedian, pairs[i].RTTMax = fmt.Sprint("node", i), 1, 2, 3
		}
		s := stateOf(bare("mlx5_0"))
		s.Paths = pairs
		out := sceneOf("libibverbs", s)
		for i := range pairs {
			out.runs = append(out.runs, askRun("mlx5_0", &pairs[i].Path))
		}
		n := 0
		for series := range values(t, out.collector()) {
			if strings.HasPrefix(series, "rdma_path_") {
				n++
			}
		}
		if n > 12*len(pairs) || n < 11*len(pairs) {
			t.Errorf("%d series of %d pairs", n, len(pairs))
		}
	}
	for series := range values(t, adapter().collector()) {
		if strings.HasPrefix(series, "rdma_path_") {
			t.Errorf("without peers there is %s", series)
		}
	}
}

// TestPathCounters verifies that results are counted, and that those without a name are not.
func TestPathCounters(t *testing.T) {
	t.Parallel()
	c := sceneOf("libibverbs", stateOf(bare("mlx5_0"))).collector()
	for _, result := range []state.PathResult{state.PathForward, state.PathForward, state.PathOK, "made up"} {
		c.Observe(askRun("mlx5_0", &state.Path{Peer: "one", Result: result}))
	}
	result := func(r state.PathResult) string {
		return fmt.Sprintf(`rdma_path_probes_total{device="mlx5_0",result=%q}`, r)
	}
	compare(t, values(t, c), map[string]string{result("ok"): "1", result("lost_forward"): "2", result("made up"): "", result("mtu"): ""})
	c.Forget("mlx5_0")
	compare(t, values(t, c), map[string]string{result("lost_forward"): ""})
}
