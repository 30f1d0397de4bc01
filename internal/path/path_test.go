package path_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/path"
)

// TestReadPeers verifies that lists are read in both forms, and what errors say.
func TestReadPeers(t *testing.T) {
	for content, want := range map[string]string{
		"- targets: [a:1, '[::1]:2']\n  labels: {tor: t1, rail: r1}\n- targets: [b:1]\n": "[{a:1 t1 r1} {[::1]:2 t1 r1} {b:1  }]",
		`[{"targets":["a:1"],"labels":{"tor":"t1"}}]`:                                    "[{a:1 t1 }]",
		"":                      "[]",
		"- targets: [a:1, b]\n": `[] FILE: the target "b" is not HOST:PORT: address b: missing port in address`,
		"targets: [a:1]\n":      "[] FILE: use a list with targets and labels, as file_sd of Prometheus has it: yaml: unmarshal errors:\n  line 1: cannot unmarshal !!map into []",
	} {
		file := filepath.Join(t.TempDir(), "peers")
		_ = os.WriteFile(file, []byte(content), 0o600)
		got := strings.ReplaceAll(fmt.Sprint(path.ReadPeers(file)), file, "FILE")
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %s, want %s", content, got, want)
		}
	}
}

// TestChoose verifies that each node asks two of its own ToR and one of another, and is asked by few.
func TestChoose(t *testing.T) {
	var peers []path.Peer
	for i := range 1000 {
		peers = append(peers, path.Peer{Target: fmt.Sprintf("node%05d:9879", i), ToR: fmt.Sprint("tor", i/40)})
	}
	asked, by, changed, rest := make(map[string]int), make(map[int]int), 0, slices.Delete(slices.Clone(peers), 40, 41)
	for i, self := range peers {
		chosen := path.Choose(self, peers)
		near := 0
		for _, p := range chosen {
			asked[p.Target]++
			near += map[bool]int{true: 1}[p.ToR == self.ToR]
		}
		if len(chosen) != 3 || near != 2 || slices.Contains(chosen, self) {
			t.Fatalf("%v asks %v", self, chosen)
		}
		if i < 200 && i != 40 && !slices.Equal(chosen, path.Choose(self, rest)) {
			changed++
		}
	}
	for _, p := range peers {
		by[asked[p.Target]]++
	}
	if by[0]+by[1] > 0 || by[3] < 900 || changed == 0 || changed > 3 {
		t.Errorf("nodes by how many ask them: %v; %d choose others when one leaves", by, changed)
	}
	for n, want := range map[int]int{0: 0, 1: 0, 2: 1, 3: 2, 4: 3, 5: 3, 41: 3} {
		got := path.Choose(peers[0], slices.Concat(peers[:n], peers[:n]))
		if len(got) != want || n == 41 && !slices.Contains(got, peers[40]) {
			t.Errorf("of %d nodes %v are chosen", n, got)
		}
	}
}

// TestNextSlot verifies that a target has one slot in each interval, and that targets are spread.
func TestNextSlot(t *testing.T) {
	const interval = 5 * time.Minute
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	used := make([]int, 10)
	for i := range 1000 {
		target := fmt.Sprintf("10.0.%d.%d:9879", i/250, i%250)
		slot := path.NextSlot(target, interval, now)
		again, next, d := path.NextSlot(target, interval, slot.Add(-1)), path.NextSlot(target, interval, slot), slot.Sub(now)
		if d <= 0 || d > interval || !again.Equal(slot) || next.Sub(slot) != interval {
			t.Fatalf("%s has slots at %s, %s and %s", target, slot, again, next)
		}
		used[(d-1)*10/interval]++
	}
	if slices.Min(used) < 60 || slices.Max(used) > 140 {
		t.Errorf("the tenths of the interval have %d targets", used)
	}
}

// TestSplit verifies that a node finds its entry by name or address, and that no other entry of the
// host is a peer.
func TestSplit(t *testing.T) {
	name, _ := os.Hostname()
	peers := []path.Peer{{Target: "other:1"}, {Target: name + ":1", ToR: "t1"}, {Target: "127.0.0.1:1", ToR: "t2"}}
	for i, tt := range [][2]string{{"", "t1"}, {"127.0.0.1:1", "t2"}, {"", "t2"}, {"127.0.0.1", ""}} {
		own, others := path.Split(append(peers[i:], path.Peer{Target: "last:1"}), tt[0])
		if own.ToR != tt[1] || len(others) != max(1, 2-i) || others[len(others)-1].Target != "last:1" {
			t.Errorf("%q is %v beside %v", tt[0], own, others)
		}
	}
}

// TestLookupPeers verifies that a host with addresses of both kinds is one peer.
func TestLookupPeers(t *testing.T) {
	for given, want := range map[string]string{
		"::ffff:10.0.0.1 2001:db8::1 10.0.0.2": "[{10.0.0.1:1  } {10.0.0.2:1  }]", "2001:db8::1 2001:db8::2": "[{[2001:db8::1]:1  } {[2001:db8::2]:1  }]", "": "[]",
	} {
		got, err := path.LookupPeers(t.Context(), func(context.Context, string, string) (list []netip.Addr, err error) {
			for _, a := range strings.Fields(given) {
				list = append(list, netip.MustParseAddr(a))
			}
			return list, nil
		}, "peers:1")
		if fmt.Sprint(got) != want || err != nil {
			t.Errorf("%s: %v, %v", given, got, err)
		}
	}
}

// TestConfig verifies that each key that cannot be used is named.
func TestConfig(t *testing.T) {
	c := path.DefaultConfig()
	c.DNS, c.Listen, c.Allow, c.Rails = "peers:9879", ":9880", []string{"10.0.0.0/8", "::1/128"}, map[string]string{"mlx5_0": "r1"}
	if err := c.Validate(); err != nil || c.RailOf("mlx5_0") != "r1" || c.RailOf("mlx5_1") != "mlx5_1" {
		t.Error(err)
	}
	c = path.Config{Interval: time.Minute, Scheme: "ftp", DNS: "peers", Listen: "9880", Allow: []string{"10.0.0.1"}}
	for _, key := range []string{"interval is 1m0s", `scheme is "ftp"`, `dns is "peers"`, `listen is "9880"`, `allow[0] is "10.0.0.1"`} {
		if err := fmt.Sprint(c.Validate()); !strings.Contains(err, "path."+key) {
			t.Errorf("no path.%s in %s", key, err)
		}
	}
}

// FuzzParse verifies that a packet which is read is written as it was, except a reserved byte.
func FuzzParse(f *testing.F) {
	good := make([]byte, path.PacketSize)
	path.Packet{Type: path.TypeReply, Flow: 2, Session: 1 << 63, Sequence: 7, Sent: 9}.Put(good)
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		again := slices.Clone(b)
		p, ok := path.Parse(b)
		if ok {
			p.Put(again)
			again[7] = b[7]
		}
		if !bytes.Equal(again, b) || ok && p.Type != path.TypeRequest && p.Type != path.TypeReply {
			t.Errorf("%x is read as %+v and written as %x", b, p, again)
		}
	})
}

// FuzzSession verifies that a request which is accepted is within its bounds.
func FuzzSession(f *testing.F) {
	f.Add([]byte(`{"device":"a","addresses":[{"gid":"::1","type":"RoCE v2"}],"qpns":[17],"qkey":1,"packets":9,"life_seconds":10,"mtu_bytes":1024,"rc_qpn":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s path.Session
		if json.Unmarshal(b, &s) == nil && s.Validate() == nil && (len(s.Addresses) > 256 || s.Packets < 1 || s.Packets > path.MaxPackets || s.Life < 1 || s.Life > 10 || s.QKey>>31 != 0 || slices.Max(append(s.QPNs, s.RC))>>24 != 0) {
			t.Errorf("%s is accepted", b)
		}
	})
}
