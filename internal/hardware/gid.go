package hardware

import (
	"math"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"rdma_exporter/internal/state"
)

func (d *device) gids(p *state.HardwarePort, dir string) {
	// iWARP has the MAC address there.
	if strings.HasSuffix(d.text(filepath.Join(d.dir, "node_type")), "RNIC") {
		return
	}
	indices, _ := d.numbers(filepath.Join(dir, "gids"))
	for _, i := range indices {
		if len(p.GIDs) == state.MaxGIDs || i > math.MaxUint16 {
			return
		}
		g, ok := d.gid(dir, i, p.LinkLayer)
		if !ok {
			continue
		}
		p.GIDs = append(p.GIDs, g)
		if p.RoCEv2IPv4 == nil && g.Type == "roce_v2" && g.Family == "ipv4" {
			p.RoCEv2IPv4 = &i
		}
	}
}

// gid reads the address with an index, if there is one.
func (d *device) gid(dir string, index int, linkLayer string) (state.GID, bool) {
	name := strconv.Itoa(index)
	address := d.text(filepath.Join(dir, "gids", name))
	ip, err := netip.ParseAddr(address)
	if err != nil || !ip.Is6() || ip.Zone() != "" || ip.IsUnspecified() {
		return state.GID{}, false
	}
	g := state.GID{Index: index, GID: address, Family: "ipv6"}
	if ip.Is4In6() {
		g.Family = "ipv4"
	}
	// The file of an address that was just removed cannot be read.
	switch {
	case d.text(filepath.Join(dir, "gid_attrs/types", name)) == "RoCE v2":
		g.Type = "roce_v2"
	case linkLayer == "Ethernet":
		g.Type = "roce_v1"
	default:
		g.Type = "ib"
	}
	if netdev := d.text(filepath.Join(dir, "gid_attrs/ndevs", name)); isNetdev(netdev) {
		g.Netdev = netdev
	}
	return g, true
}
