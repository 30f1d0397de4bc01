package verbs_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/verbs"
)

// TestToSelf verifies that every usable address is there, the best first.
func TestToSelf(t *testing.T) {
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
	local := []verbs.GIDEntry{
		{Port: 1, Index: 0, GID: gid("fe80::1"), Type: verbs.GIDTypeRoCEv2},
		{Port: 1, Index: 4, GID: gid("2001:db8::1"), Type: verbs.GIDTypeRoCEv2},
	}
	ethernet, lid := verbs.PortAttr{LinkLayer: verbs.LinkEthernet}, verbs.PortAttr{LinkLayer: verbs.LinkInfiniBand, LID: 7}
	for _, tt := range []struct {
		name  string
		port  verbs.PortAttr
		table []verbs.GIDEntry
		want  string
	}{
		{"RoCE", ethernet, table, "gid 3, gid 5, gid 1, gid 2, gid 0"},
		{"link-local last", ethernet, local, "gid 4, gid 0"},
		{"another port's", ethernet, table[5:6], ""},
		{"none", ethernet, nil, ""},
		{"InfiniBand", lid, ib, "lid 7, lid 7 gid 1, lid 7 gid 0"},
		{"InfiniBand without LID and GID", verbs.PortAttr{LinkLayer: verbs.LinkInfiniBand}, nil, ""},
		{"InfiniBand that wants a GRH", verbs.PortAttr{LinkLayer: verbs.LinkInfiniBand, LID: 7, GRHRequired: true}, ib, "lid 7 gid 1, lid 7 gid 0"},
		{"InfiniBand without LID", verbs.PortAttr{LinkLayer: verbs.LinkInfiniBand}, ib, "gid 1, gid 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := verbs.ToSelf(1, tt.port, tt.table)
			if (err != nil) != (tt.want == "") {
				t.Errorf("error %v", err)
			}
			var got []string
			for _, a := range list {
				var words []string
				own := func(e verbs.GIDEntry) bool { return e.Port == 1 && e.Index == a.SGIDIndex && e.GID == a.DGID }
				if a.Port != 1 || a.Global && (a.HopLimit != 64 || !slices.ContainsFunc(tt.table, own)) {
					t.Errorf("address %+v", a)
				}
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
