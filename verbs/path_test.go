package verbs_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"rdma_exporter/verbs"
)

func TestToSelf(t *testing.T) {
	gid := func(s string) verbs.GID { return verbs.GID(netip.MustParseAddr(s).As16()) }
	linkLocal, global, ipv4 := gid("fe80::1"), gid("2001:db8::1"), gid("::ffff:10.77.0.1")
	ethernet := verbs.PortAttr{LinkLayer: verbs.LinkEthernet}
	entry := func(port, index int, g verbs.GID, typ verbs.GIDType) verbs.GIDEntry {
		return verbs.GIDEntry{Port: port, Index: index, GID: g, Type: typ}
	}
	for _, tt := range []struct {
		name  string
		port  verbs.PortAttr
		table []verbs.GIDEntry
		want  verbs.AHAttr
		fails bool
	}{
		{
			name:  "InfiniBand goes by LID",
			port:  verbs.PortAttr{LinkLayer: verbs.LinkInfiniBand, LID: 7},
			table: []verbs.GIDEntry{entry(1, 0, linkLocal, verbs.GIDTypeIB)},
			want:  verbs.AHAttr{Port: 1, DLID: 7},
		},
		{
			name: "InfiniBand without LID", port: verbs.PortAttr{LinkLayer: verbs.LinkInfiniBand}, fails: true,
		},
		{
			name: "RoCE v2 before v1", port: ethernet,
			table: []verbs.GIDEntry{entry(1, 0, ipv4, verbs.GIDTypeRoCEv1), entry(1, 1, linkLocal, verbs.GIDTypeRoCEv2)},
			want:  verbs.AHAttr{Port: 1, Global: true, DGID: linkLocal, SGIDIndex: 1, HopLimit: 64},
		},
		{
			name: "IPv4 before the others", port: ethernet,
			table: []verbs.GIDEntry{
				entry(1, 0, linkLocal, verbs.GIDTypeRoCEv2), entry(1, 1, ipv4, verbs.GIDTypeRoCEv2),
				entry(1, 2, global, verbs.GIDTypeRoCEv2),
			},
			want: verbs.AHAttr{Port: 1, Global: true, DGID: ipv4, SGIDIndex: 1, HopLimit: 64},
		},
		{
			name: "link-local last", port: ethernet,
			table: []verbs.GIDEntry{entry(1, 0, linkLocal, verbs.GIDTypeRoCEv2), entry(1, 4, global, verbs.GIDTypeRoCEv2)},
			want:  verbs.AHAttr{Port: 1, Global: true, DGID: global, SGIDIndex: 4, HopLimit: 64},
		},
		{
			name: "another port's", port: ethernet,
			table: []verbs.GIDEntry{entry(2, 0, ipv4, verbs.GIDTypeRoCEv2)}, fails: true,
		},
		{name: "none", port: ethernet, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := verbs.ToSelf(1, tt.port, tt.table)
			if tt.fails {
				if err == nil {
					t.Errorf("ToSelf = %+v; want an error", got)
				}
				return
			}
			if err != nil || len(got) == 0 || got[0] != tt.want {
				t.Errorf("ToSelf = %+v, %v; want first %+v", got, err, tt.want)
			}
		})
	}
}

// TestToSelfOrder: every address that may do is there, the best first.
func TestToSelfOrder(t *testing.T) {
	gid := func(s string) verbs.GID { return verbs.GID(netip.MustParseAddr(s).As16()) }
	table := []verbs.GIDEntry{
		{Port: 1, Index: 0, GID: gid("fe80::1"), Type: verbs.GIDTypeRoCEv1},
		{Port: 1, Index: 1, GID: gid("fe80::1"), Type: verbs.GIDTypeRoCEv2},
		{Port: 1, Index: 2, GID: gid("::ffff:10.77.0.1"), Type: verbs.GIDTypeRoCEv1},
		{Port: 1, Index: 3, GID: gid("::ffff:10.77.0.1"), Type: verbs.GIDTypeRoCEv2},
		{Port: 1, Index: 4, Type: verbs.GIDTypeRoCEv2}, // not used
		{Port: 2, Index: 0, GID: gid("::ffff:10.77.0.2"), Type: verbs.GIDTypeRoCEv2},
		{Port: 1, Index: 5, GID: gid("::ffff:10.78.0.1"), Type: verbs.GIDTypeRoCEv2},
	}
	ib := []verbs.GIDEntry{{Port: 1, Index: 0, GID: gid("fe80::1")}, {Port: 1, Index: 1, GID: gid("fec0::1")}}
	for _, tt := range []struct {
		name  string
		port  verbs.PortAttr
		table []verbs.GIDEntry
		want  string
	}{
		{"RoCE", verbs.PortAttr{LinkLayer: verbs.LinkEthernet}, table, "gid 3, gid 5, gid 1, gid 2, gid 0"},
		{"InfiniBand", verbs.PortAttr{LinkLayer: verbs.LinkInfiniBand, LID: 7}, ib, "lid 7, lid 7 gid 1, lid 7 gid 0"},
		{"InfiniBand that wants a GRH", verbs.PortAttr{LinkLayer: verbs.LinkInfiniBand, LID: 7, GRHRequired: true}, ib, "lid 7 gid 1, lid 7 gid 0"},
		{"InfiniBand without LID", verbs.PortAttr{LinkLayer: verbs.LinkInfiniBand}, ib, "gid 1, gid 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := verbs.ToSelf(1, tt.port, tt.table)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range list {
				var words []string
				if a.DLID != 0 {
					words = append(words, fmt.Sprintf("lid %d", a.DLID))
				}
				if a.Global {
					words = append(words, fmt.Sprintf("gid %d", a.SGIDIndex))
				}
				got = append(got, strings.Join(words, " "))
			}
			if got := strings.Join(got, ", "); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestPKey(t *testing.T) {
	for key, full := range map[verbs.PKey]bool{0xffff: true, 0x8001: true, 0x7fff: false, 0x0001: false, 0: false, 0x8000: false} {
		if key.IsFull() != full {
			t.Errorf("%s is that of a full member: %t", key, key.IsFull())
		}
	}
	if got := verbs.PKey(0x7fff).String(); got != "0x7fff" {
		t.Errorf("%q", got)
	}
}
