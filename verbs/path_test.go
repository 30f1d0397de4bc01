package verbs_test

import (
	"net/netip"
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
