package session

import (
	"fmt"

	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// queries remembers the result of a query for each port.
type queries[T any] map[int]struct {
	result T
	err    error
}

func (q queries[T]) get(port int, query func() (T, error)) (T, error) {
	r, ok := q[port]
	if !ok {
		r.result, r.err = query()
		q[port] = r
	}
	return r.result, r.err
}

// Port returns a port's attributes. It queries each port once.
func (s *Session) Port(number int) (verbs.PortAttr, error) {
	return s.ports.get(number, func() (verbs.PortAttr, error) {
		attr, err := s.Device.QueryPort(number)
		if err != nil {
			err = fmt.Errorf("query port %d: %w", number, err)
		}
		return attr, err
	})
}

// gidTable returns the GIDs of all ports. It queries them once.
func (s *Session) gidTable() ([]verbs.GIDEntry, error) {
	return s.gids.get(0, func() ([]verbs.GIDEntry, error) {
		table, err := s.Device.GIDTable()
		if err != nil {
			err = fmt.Errorf("query the GID table: %w", err)
		}
		return table, err
	})
}

// Route is how a port reaches itself.
type Route struct {
	Port int
	AH   verbs.AHAttr
	// MTU is in bytes.
	MTU int
	// Type is that of the GID by which the port is reached. It has no meaning with a LID.
	Type verbs.GIDType
	// PKeyIndex is that of the partition. QKey is that of UD QPs. Zero means [verbs.UDQKey].
	PKeyIndex uint16
	QKey      uint32
	// Access is what the peer may do besides sending, and Reads how many reads may be outstanding.
	Access verbs.Access
	Reads  uint8
	// by names the address in words.
	by string
}

// String names the address by which the port is reached.
func (r Route) String() string { return r.by }

// Routes returns the candidates by which a port may reach itself, the best first. The error
// is an *ObstacleError if it has none.
func (s *Session) Routes(number int) ([]Route, error) {
	if t := s.Device.Transport(); t == verbs.TransportIWARP {
		return nil, obstacle(state.SkipNotSupported, "%s connects through a connection manager only", t)
	}
	attr, err := s.Port(number)
	if err != nil {
		return nil, err
	}
	if attr.State != verbs.PortActive {
		return nil, obstacle(state.SkipPortDown, "port %d is %s", number, attr.State)
	}
	list, err := s.addresses(number)
	if err != nil {
		return nil, err
	}
	pkey, err := s.fullMember(number)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].PKeyIndex = pkey
	}
	return list, nil
}

// addresses returns the addresses of a port in any state, as routes.
func (s *Session) addresses(number int) ([]Route, error) {
	attr, err := s.Port(number)
	if err != nil {
		return nil, err
	}
	table, err := s.gidTable()
	// A LID needs no table.
	list, none := verbs.ToSelf(number, attr, table)
	switch {
	case err != nil && none != nil:
		return nil, err
	case none != nil:
		return nil, obstacle(state.SkipNeeds, "no way from port %d to itself: %v", number, none)
	}
	routes := make([]Route, 0, len(list))
	for _, ah := range list {
		r := Route{Port: number, AH: ah, MTU: attr.ActiveMTU, by: fmt.Sprintf("LID %d", ah.DLID)}
		for _, e := range table {
			if ah.Global && e.Port == number && e.Index == ah.SGIDIndex {
				r.Type, r.by = e.Type, fmt.Sprintf("GID %d, %s (%s)", e.Index, e.GID, e.Type)
			}
		}
		routes = append(routes, r)
	}
	return routes, nil
}

// fullMember returns the index of the first partition key of a port by which it reaches
// itself. Limited members of a partition reach full ones only.
func (s *Session) fullMember(number int) (uint16, error) {
	attr, err := s.Port(number)
	// RoCE has the default partition and no other.
	if err != nil || attr.LinkLayer != verbs.LinkInfiniBand {
		return 0, err
	}
	return s.pkeys.get(number, func() (uint16, error) {
		limited := 0
		for i := range attr.PKeys {
			key, err := s.Device.PKey(number, i)
			switch {
			case err != nil:
				return 0, fmt.Errorf("query partition key %d of port %d: %w", i, number, err)
			case key.IsFull():
				return uint16(i), nil
			case key != 0:
				limited++
			}
		}
		return 0, obstacle(state.SkipNeeds, "port %d is a full member of no partition, and a limited one of %d: limited members do not reach each other", number, limited)
	})
}

// AnyPort returns the first port that answers, in any state, or else port 1.
func (s *Session) AnyPort() int {
	for number := 1; number <= s.Attr.Ports; number++ {
		if _, err := s.Port(number); err == nil {
			return number
		}
	}
	return 1
}
