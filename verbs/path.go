package verbs

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// hopLimit lets a packet pass some routers; on the way to itself it meets none.
const hopLimit = 64

// ToSelf returns the addresses of a port as the port itself sees it, for a
// connection from the port to itself, the best first: on InfiniBand its LID, unless
// it has none or wants a global route header; then each of its GIDs in the table,
// RoCE v2 before v1, IPv4-mapped before others, link-local last. Which of them
// leads anywhere has to be tried: a GID can be that of a VLAN, or of a network
// device that is down. The error says what the port lacks.
func ToSelf(number int, port PortAttr, table []GIDEntry) ([]AHAttr, error) {
	var list []AHAttr
	at := AHAttr{Port: number}
	if port.LinkLayer == LinkInfiniBand {
		at.DLID = port.LID
		if port.LID != 0 && !port.GRHRequired {
			list = append(list, at)
		}
	}
	var own []GIDEntry
	for _, e := range table {
		if e.Port == number && e.GID != (GID{}) {
			own = append(own, e)
		}
	}
	slices.SortStableFunc(own, func(a, b GIDEntry) int { return cmp.Compare(b.rank(), a.rank()) })
	at.Global, at.HopLimit = true, hopLimit
	for _, e := range own {
		at.DGID, at.SGIDIndex = e.GID, e.Index
		list = append(list, at)
	}
	switch {
	case len(list) > 0:
		return list, nil
	case port.LinkLayer == LinkInfiniBand && port.LID == 0:
		return nil, fmt.Errorf("port %d has no LID, and none of %d GIDs belongs to it", number, len(table))
	default:
		return nil, fmt.Errorf("none of %d GIDs belongs to port %d", len(table), number)
	}
}

// rank returns how well a GID suits, from 1 up.
func (e GIDEntry) rank() int {
	r, address := 10*(int(e.Type)+1), netip.AddrFrom16(e.GID)
	switch {
	case address.Is4In6():
		return r + 2
	case !address.IsLinkLocalUnicast():
		return r + 1
	default:
		return r
	}
}
