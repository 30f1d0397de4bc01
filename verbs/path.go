package verbs

import "fmt"

// hopLimit lets a packet pass some routers; on the way to itself it meets none.
const hopLimit = 64

// ToSelf returns the address of a port as the port itself sees it, for a
// connection from the port to itself: its LID on InfiniBand; elsewhere the best
// of its GIDs in the table, RoCE v2 before v1, IPv4-mapped before others,
// link-local last. The error says what the port lacks.
func ToSelf(number int, port PortAttr, table []GIDEntry) (AHAttr, error) {
	if port.LinkLayer == LinkInfiniBand {
		if port.LID == 0 {
			return AHAttr{}, fmt.Errorf("port %d has no LID", number)
		}
		return AHAttr{Port: number, DLID: port.LID}, nil
	}
	best, bestRank := GIDEntry{}, 0
	for _, e := range table {
		if e.Port != number {
			continue
		}
		if rank := e.rank(); rank > bestRank {
			best, bestRank = e, rank
		}
	}
	if bestRank == 0 {
		return AHAttr{}, fmt.Errorf("none of %d GIDs belongs to port %d", len(table), number)
	}
	return AHAttr{Port: number, Global: true, DGID: best.GID, SGIDIndex: best.Index, HopLimit: hopLimit}, nil
}

// rank returns how well a GID suits, from 1 up.
func (e GIDEntry) rank() int {
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
