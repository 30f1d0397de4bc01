package path_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"rdma_exporter/internal/path"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

// TestListOfRails verifies that devices ask on their own rail where each rail has targets of its
// own, and that this host is none of them.
func TestListOfRails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peers.yml")
	text := `[{targets: ["a:1", "b:1", "c:1"], labels: {rail: "0", tor: r0}}, {targets: ["a:1", "d:1"], labels: {rail: "1", tor: r1}}]`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := path.DefaultConfig()
	c.Self, c.Rails = "a:1", map[string]string{"mlx5_0": "0", "mlx5_1": "1"}
	list, err := path.NewList(t.Context(), c, file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for device, want := range map[string]int{"mlx5_0": 2, "mlx5_1": 1, "mlx5_2": 0} {
		targets := list.Targets(device)
		if len(targets) != want {
			t.Errorf("%s asks %+v, want %d", device, targets, want)
		}
		for _, to := range targets {
			if to.Peer == "a:1" || to.Rail != c.Rails[device] || to.ToR != list.ToR(device) || to.PeerToR != to.ToR {
				t.Errorf("%s asks %+v", device, to)
			}
		}
	}
}

// TestMatchOfMany verifies that no address of several ports is ever sent to.
func TestMatchOfMany(t *testing.T) {
	v4 := session.Route{AH: verbs.AHAttr{Global: true, DGID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 15: 1}}, Type: verbs.GIDTypeRoCEv2}
	v6 := session.Route{AH: verbs.AHAttr{Global: true, DGID: verbs.GID{0: 0x20, 1: 1, 15: 1}}, Type: verbs.GIDTypeRoCEv2}
	routes := []session.Route{v4, v6, {AH: verbs.AHAttr{DLID: 7}}}
	for gid, want := range map[string]bool{
		"::ffff:10.0.0.2": true, "2001::2": true,
		"::ffff:224.0.0.1": false, "::ffff:255.255.255.255": false, "::ffff:0.0.0.0": false, "::ffff:127.0.0.1": false, "ff0e::1": false, "::": false, "fe80::1": false,
	} {
		if _, _, err := path.Match(routes, []path.Address{{GID: gid, Type: verbs.GIDTypeRoCEv2.String()}}); (err == nil) != want {
			t.Errorf("%s: %v", gid, err)
		}
	}
	for lid, want := range map[uint16]bool{0: false, 9: true, 0xbfff: true, 0xc000: false, 0xffff: false} {
		if _, _, err := path.Match(routes, []path.Address{{LID: lid}}); (err == nil) != want {
			t.Errorf("LID %#x: %v", lid, err)
		}
	}
}
