package paths_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health/paths"
	"rdma_exporter/internal/state"
)

func at() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

// pair is "peer result suspect failures", and then words of what else is so.
func pair(t *testing.T, text string) state.PathState {
	t.Helper()
	words := strings.Fields(text)
	p := state.PathState{At: at(), Path: state.Path{
		Peer: words[0] + ":10879", PeerDevice: "mlx5_0", Result: state.PathResult(words[1]), Detail: "evidence of " + words[0],
	}}
	if !p.Result.Valid() {
		t.Fatalf("no result %q", words[1])
	}
	for _, w := range words[2:] {
		switch w {
		case "device", "peer", "path":
			p.Suspect = w
		case "worked":
			p.Worked = at().Add(-time.Hour)
		case "reached":
			p.PeerReached = true
		case "twice":
			p.Failures = 2
		case "once":
			p.Failures = 1
		case "verb":
			p.Verb, p.Errno = "ibv_create_qp", "ENOMEM"
		case "late":
			p.Late = 3
		default:
			p.PeerDevice = w
		}
	}
	return p
}

func device(t *testing.T, pairs ...string) state.DeviceState {
	t.Helper()
	d := state.DeviceState{Name: "mlx5_0", Present: true}
	for _, text := range pairs {
		d.Paths = append(d.Paths, pair(t, text))
	}
	return d
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		pairs []string
		want  []string
		// says is a part of the text of the first finding.
		says string
	}{
		{"without peers", nil, nil, ""},
		{"all work", []string{"a ok worked", "b ok worked"}, nil, ""},
		{"one never worked", []string{"a lost_forward path twice", "b ok worked"}, []string{"info path: path a"}, "It has never worked."},
		{
			"one never worked, and the peer was reached",
			[]string{"a lost_forward path once reached", "b ok worked"},
			[]string{"warning path: path a"},
			"It has never worked. Other nodes reach that device.",
		},
		{"the peer was reached, but no other pair works", []string{"a lost_forward path twice reached"}, []string{"info path: path a"}, ""},
		{"one worked, and failed once", []string{"a mtu path once worked", "b ok worked"}, nil, ""},
		{
			"one worked, and failed twice",
			[]string{"a mtu path twice worked", "b ok worked"},
			[]string{"warning path: path a"},
			"It worked at 2026-03-01 11:00:00 UTC, and failed in 2 runs in a row. The suspect is the path.",
		},
		{"two peers agree", []string{"a lost_forward path twice worked", "b address path twice worked"}, []string{"critical device: device"}, "lost_forward to mlx5_0 of a:10879, address to mlx5_0 of b:10879. Evidence: evidence of a."},
		{"two peers agree, one of which never worked", []string{"a address path once", "b mtu path twice worked"}, []string{"critical device: device"}, "mtu to mlx5_0 of b:10879, address to"},
		{"two peers are at fault", []string{"a target_device peer twice worked", "b target_device peer twice worked"}, []string{"warning peer: peer a", "warning peer: peer b"}, ""},
		{"no peer worked ever", []string{"a address path twice", "b address path twice"}, []string{"info path: path a", "info path: path b"}, ""},
		{"two devices of one peer", []string{"a address path twice worked", "a address path twice worked mlx5_1"}, []string{"warning path: path a"}, "address to mlx5_1 of a"},
		{"one of two peers has failed but once", []string{"a address path twice worked", "b address path once worked"}, []string{"warning path: path a"}, ""},
		{"a third works", []string{"a address path twice worked", "b address path twice worked", "c slow path late worked"}, []string{"warning path: path a", "warning path: path b", "slow warning path: path c"}, ""},
		{"peers that cannot be asked agree on nothing", []string{"a control_unreachable twice worked", "b refused twice worked", "c unsupported twice"}, []string{"info unasked: peer a", "info unasked: peer b"}, "says nothing about RDMA"},
		{"nor with one that fails", []string{"a control_unreachable twice worked", "b mtu path twice worked"}, []string{"warning path: path b", "info unasked: peer a"}, ""},
		{"dead, and one that cannot be asked", []string{"a mtu path twice worked", "b mtu path twice worked", "c refused once"}, []string{"critical device: device", "info unasked: peer c"}, ""},
		{"slow", []string{"a slow path worked late"}, []string{"slow warning path: path a"}, "A path is slow: slow to mlx5_0 of a:10879. Evidence: evidence of a. So it was in 3 runs in a row."},
		{"slow for another reason", []string{"a slow device worked late", "b slow peer worked late"}, []string{"slow warning path: path a", "slow warning path: path b"}, ""},
		{
			"each suspect is named once, the worst first",
			[]string{"a mtu path twice", "a flow path twice worked mlx5_1", "a target_device peer twice worked", "b source_device device verb twice worked", "c source_device device twice worked", "d ok worked"},
			[]string{"warning path: path a", "warning peer: peer a", "warning device: device ibv_create_qp ENOMEM"},
			"flow to mlx5_1 of a:10879, mtu to mlx5_0 of a:10879",
		},
		{"without a suspect", []string{"a lost_reverse twice worked", "b ok worked"}, []string{"warning path: path a"}, ""},
	} {
		d := device(t, tc.pairs...)
		var got []string
		all := paths.Of(&d, []state.DeviceState{d})
		for _, f := range all {
			slow := map[bool]string{true: "slow "}[f.Slow]
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s%s %s: %s %s %s", slow, f.Severity, f.Case, strings.TrimSuffix(f.Subject, ":10879"), f.Verb, f.Errno)))
			if f.Reason == "" || f.Action == "" || strings.Contains(f.Reason, "10879") {
				t.Errorf("%s: %+v", tc.name, f)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		} else if len(all) > 0 && !strings.Contains(all[0].Message, tc.says) {
			t.Errorf("%s: %q is not in %q", tc.name, tc.says, all[0].Message)
		}
	}
}

// TestActions verifies that each result that is a problem says what to do, each another thing.
func TestActions(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, r := range state.PathResults() {
		d := device(t, "a "+string(r))
		for _, f := range paths.Of(&d, nil) {
			if f.Action == "" || seen[f.Action] || seen[f.Reason] {
				t.Errorf("%s: %+v", r, f)
			}
			seen[f.Action], seen[f.Reason] = true, true
		}
	}
	if len(seen) != 2*(len(state.PathResults())-2) { // All but ok and unsupported.
		t.Errorf("%d texts", len(seen))
	}
}

// TestOtherDevices verifies that a dead device is compared with the others of the host.
func TestOtherDevices(t *testing.T) {
	t.Parallel()
	d := device(t, "a mtu path twice worked", "b mtu path twice worked")
	other := device(t, "a ok worked")
	const says = "Other devices of this host reach peers."
	if f := paths.Of(&d, []state.DeviceState{d, other}); !strings.Contains(f[0].Message, says) {
		t.Errorf("%q", f[0].Message)
	}
	other.Paths[0].Result = state.PathMTU
	if f := paths.Of(&d, []state.DeviceState{d, other}); strings.Contains(f[0].Message, says) {
		t.Errorf("%q", f[0].Message)
	}
}

func TestLast(t *testing.T) {
	t.Parallel()
	d := device(t, "a ok", "b ok", "c ok")
	d.Paths[1].At = at().Add(time.Minute)
	if got := paths.Last(d.Paths); !got.Started.Equal(d.Paths[1].At) || paths.Last(nil) != nil {
		t.Errorf("%+v", got)
	}
}
