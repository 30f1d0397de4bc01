package verbstest

import (
	"errors"
	"fmt"

	"rdma_exporter/verbs"
)

// path is the way from port 1 of a device to itself.
type path struct {
	ah  verbs.AHAttr
	mtu int
}

// path returns the way from port 1 back to it, or why there is none.
func (d *device) path() (path, error) {
	d.b.t.Helper()
	port, err := d.QueryPort(1)
	if err != nil {
		return path{}, err
	}
	table, err := d.GIDTable()
	if err != nil {
		return path{}, err
	}
	ah, err := toSelf(port, table)
	return path{ah: ah, mtu: port.ActiveMTU}, err
}

// mustPath is path for a device whose port is active.
func (d *device) mustPath() path {
	d.b.t.Helper()
	p, err := d.path()
	if err != nil {
		d.b.t.Fatalf("the port is active, but there is no way to it: %v", err)
	}
	return p
}

// toSelf returns the address of port 1 as seen from itself: its LID on
// InfiniBand; elsewhere the best of its GIDs, RoCE v2 before v1, IPv4-mapped
// before others, link-local last.
func toSelf(port verbs.PortAttr, table []verbs.GIDEntry) (verbs.AHAttr, error) {
	if port.LinkLayer == verbs.LinkInfiniBand {
		if port.LID == 0 {
			return verbs.AHAttr{}, errors.New("port 1 has no LID")
		}
		return verbs.AHAttr{Port: 1, DLID: port.LID}, nil
	}
	best, bestRank := verbs.GIDEntry{}, 0
	for _, e := range table {
		if e.Port != 1 {
			continue
		}
		if rank := rank(e); rank > bestRank {
			best, bestRank = e, rank
		}
	}
	if bestRank == 0 {
		return verbs.AHAttr{}, fmt.Errorf("none of %d GIDs belongs to port 1", len(table))
	}
	return verbs.AHAttr{Port: 1, Global: true, DGID: best.GID, SGIDIndex: best.Index, HopLimit: 64}, nil
}

// rank returns how well a GID suits, from 1 up.
func rank(e verbs.GIDEntry) int {
	r := 10 * (int(e.Type) + 1)
	switch {
	case e.GID.IsIPv4():
		return r + 2
	case !e.GID.IsLinkLocal():
		return r + 1
	default:
		return r
	}
}
