package collector_test

import (
	"fmt"
	"regexp"
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

// TestPathBudget verifies that a pair has at most 12 series, and a device without pairs none.
func TestPathBudget(t *testing.T) {
	t.Parallel()
	per := make(map[string]int)
	for series := range values(t, paths().collector()) {
		if pair := regexp.MustCompile(`peer="[^"]*",peer_device="[^"]*"`).FindString(series); pair != "" {
			per[pair]++
		}
	}
	if len(per) != len(state.PathResults()) {
		t.Errorf("the pairs are %v", per)
	}
	for pair, n := range per {
		if n > 12 {
			t.Errorf("%d series of %s", n, pair)
		}
	}
	for series := range values(t, adapter().collector()) {
		if strings.HasPrefix(series, "rdma_path_") {
			t.Errorf("without peers there is %s", series)
		}
	}
}

// TestPathCounters verifies that packets and results add up, and go with their pair and device.
func TestPathCounters(t *testing.T) {
	t.Parallel()
	s := sceneOf("libibverbs", stateOf(bare("mlx5_0")))
	all, device := pathsOf(), &s.snapshot.Devices[0]
	device.Paths = all[:2]
	c := s.collector()
	lost := &all[6].Path
	sent := func(p *state.Path) string {
		return fmt.Sprintf(`rdma_path_packets_sent_total{device="mlx5_0",peer=%q,peer_device=%q}`, p.Peer, p.PeerDevice)
	}
	forward := strings.NewReplacer("sent", "lost", `{device`, `{device`, `,peer="`, `,direction="forward",peer="`).Replace(sent(lost))
	const result = `rdma_path_probes_total{device="mlx5_0",result="lost_forward"}`
	compare(t, values(t, c), map[string]string{sent(&all[0].Path): "0", result: ""})
	for range 2 {
		c.Observe(askRun("mlx5_0", &all[0].Path))
		c.Observe(askRun("mlx5_0", lost)) // Its state is not published yet.
	}
	compare(t, values(t, c), map[string]string{
		sent(&all[0].Path): "66", sent(lost): "", result: "2", `rdma_path_probes_total{device="mlx5_0",result="ok"}`: "2",
	})
	device.Paths = all[6:7]
	compare(t, values(t, c), map[string]string{sent(&all[0].Path): "", sent(lost): "66", forward: "6"})
	device.Paths = all[:7]
	compare(t, values(t, c), map[string]string{sent(&all[0].Path): "0", sent(lost): "66"})
	for i := range 300 {
		c.Observe(askRun("mlx5_0", &state.Path{Peer: fmt.Sprint("churn", i), Result: "made up", Sent: -1}))
	}
	many := state.Path{Peer: "one too many", Sent: 5, Result: state.PathOK}
	c.Observe(askRun("mlx5_0", &many))
	device.Paths = append(device.Paths, state.PathState{Path: many})
	compare(t, values(t, c), map[string]string{sent(&many): "0", `rdma_path_probes_total{device="mlx5_0",result="made up"}`: ""})
	c.Forget("mlx5_0")
	compare(t, values(t, c), map[string]string{sent(lost): "0", result: ""})
}
