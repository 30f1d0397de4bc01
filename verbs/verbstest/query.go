package verbstest

import (
	"math"
	"regexp"
	"slices"
	"testing"

	"rdma_exporter/verbs"
)

var guidFormat = regexp.MustCompile(`^[0-9a-f]{4}(:[0-9a-f]{4}){3}$`)

// query tests the attributes of a device.
func (s *suite) query(t *testing.T) {
	s.run(t, "device", func(t *testing.T, d *device) {
		attr := must(d.Query())(t, "Query")
		if attr.Ports < 1 {
			t.Errorf("Ports = %d", attr.Ports)
		}
		for name, limit := range map[string]int{
			"MaxQP": attr.Limits.MaxQP, "MaxQPWR": attr.Limits.MaxQPWR, "MaxSGE": attr.Limits.MaxSGE,
			"MaxCQ": attr.Limits.MaxCQ, "MaxCQE": attr.Limits.MaxCQE, "MaxMR": attr.Limits.MaxMR,
			"MaxPD": attr.Limits.MaxPD, "MaxPKeys": attr.Limits.MaxPKeys,
		} {
			if limit < 1 {
				t.Errorf("%s = %d", name, limit)
			}
		}
		if attr.Limits.MaxMRSize == 0 {
			t.Error("MaxMRSize = 0")
		}
		for name, limit := range map[string]int{
			"MaxQPRdAtom": attr.Limits.MaxQPRdAtom, "MaxQPInitRdAtom": attr.Limits.MaxQPInitRdAtom,
			"MaxMW": attr.Limits.MaxMW, "MaxAH": attr.Limits.MaxAH, "MaxSRQ": attr.Limits.MaxSRQ,
			"MaxSRQWR": attr.Limits.MaxSRQWR, "MaxSRQSGE": attr.Limits.MaxSRQSGE,
			"MaxMcastGroup": attr.Limits.MaxMcastGroup, "MaxMcastQP": attr.Limits.MaxMcastQP,
		} {
			if limit < 0 {
				t.Errorf("%s = %d", name, limit)
			}
		}
		if !guidFormat.MatchString(attr.NodeGUID.String()) {
			t.Errorf("NodeGUID = %q", attr.NodeGUID)
		}
		if attr.NodeGUID == (verbs.GUID{}) {
			t.Error("NodeGUID is zero")
		}
		again, err := d.Query()
		if err != nil || again != attr {
			t.Errorf("Query again: %+v, %v; want %+v", again, err, attr)
		}
		if n := d.raw.CompletionVectors(); n < 1 {
			t.Errorf("CompletionVectors = %d", n)
		}
		if tr := d.raw.Transport(); tr < verbs.TransportUnknown || tr > verbs.TransportUnspecified {
			t.Errorf("Transport = %d", tr)
		}
	})
	s.run(t, "types", func(t *testing.T, d *device) {
		types := d.raw.QPTypes()
		if !slices.IsSorted(types) || len(slices.Compact(slices.Clone(types))) != len(types) {
			t.Errorf("QPTypes = %v: want each once, in order", types)
		}
		for _, typ := range verbs.QPTypes() {
			if !slices.Contains(types, typ) {
				t.Errorf("QPTypes = %v, want %s among them", types, typ)
			}
		}
		clear(types) // the caller's own
		if again := d.raw.QPTypes(); !slices.Equal(again, s.types) {
			t.Errorf("QPTypes again: %v, want %v", again, s.types)
		}
	})
	s.run(t, "port", func(t *testing.T, d *device) {
		attr := must(d.Query())(t, "Query")
		for port := 1; port <= attr.Ports; port++ {
			p := must(d.QueryPort(port))(t, "QueryPort(%d)", port)
			if p.State < verbs.PortNop || p.State > verbs.PortActiveDefer {
				t.Errorf("port %d: State = %s", port, p.State)
			}
			if p.LinkLayer < verbs.LinkUnspecified || p.LinkLayer > verbs.LinkEthernet {
				t.Errorf("port %d: LinkLayer = %s", port, p.LinkLayer)
			}
			switch p.ActiveMTU {
			case 256, 512, 1024, 2048, 4096:
			default:
				t.Errorf("port %d: ActiveMTU = %d bytes", port, p.ActiveMTU)
			}
			if p.PKeys < 0 {
				t.Errorf("port %d: PKeys = %d", port, p.PKeys)
			}
			if port == 1 && (p.State == verbs.PortActive) != s.cfg.PortActive {
				t.Errorf("port 1 is %s, expected active: %t", p.State, s.cfg.PortActive)
			}
		}
	})
	s.run(t, "no such port", func(t *testing.T, d *device) {
		attr := must(d.Query())(t, "Query")
		// Those of one byte more would be port 1, were they cut to a byte.
		for _, port := range []int{0, attr.Ports + 1, -1, 257, -255, math.MaxInt, math.MinInt} {
			if port >= 1 && port <= attr.Ports {
				continue
			}
			if _, err := d.QueryPort(port); err == nil {
				t.Errorf("QueryPort(%d) succeeded, the device has %d ports", port, attr.Ports)
			}
		}
		if _, err := d.QueryPort(1); err != nil {
			t.Errorf("QueryPort(1) afterwards: %v", err)
		}
	})
	s.run(t, "partition keys", func(t *testing.T, d *device) {
		p := must(d.QueryPort(1))(t, "QueryPort(1)")
		for index := range p.PKeys {
			if _, err := d.raw.PKey(1, index); err != nil {
				t.Errorf("PKey(1, %d) of %d: %v", index, p.PKeys, err)
			}
		}
		if key, err := d.raw.PKey(1, 0); s.cfg.PortActive && d.raw.Transport() == verbs.TransportIB && (err != nil || !key.IsFull()) {
			t.Errorf("PKey(1, 0) = %s, %v; want a full member", key, err)
		}
		for _, at := range [][2]int{{1, -1}, {1, math.MaxInt}, {0, 0}, {256, 0}, {-255, 0}} {
			if key, err := d.raw.PKey(at[0], at[1]); err == nil {
				t.Errorf("PKey(%d, %d) = %s", at[0], at[1], key)
			}
		}
	})
	s.run(t, "GID table", func(t *testing.T, d *device) {
		attr := must(d.Query())(t, "Query")
		table := must(d.GIDTable())(t, "GIDTable")
		if s.cfg.PortActive && len(table) == 0 {
			t.Error("the port is active, yet no GID is used")
		}
		type place struct{ port, index int }
		seen := make(map[place]bool)
		for _, e := range table {
			if e.Port < 1 || e.Port > attr.Ports {
				t.Errorf("entry %+v: the device has %d ports", e, attr.Ports)
				continue
			}
			if e.Index < 0 || e.Index > math.MaxUint8 {
				t.Errorf("entry %+v: the index does not fit a byte", e)
			}
			if e.GID == (verbs.GID{}) {
				t.Errorf("entry %+v is unused", e)
			}
			if e.Type < verbs.GIDTypeIB || e.Type > verbs.GIDTypeRoCEv2 {
				t.Errorf("entry %+v: unknown type", e)
			}
			if seen[place{e.Port, e.Index}] {
				t.Errorf("entry %+v is there twice", e)
			}
			seen[place{e.Port, e.Index}] = true
		}
	})
	s.run(t, "cost", func(t *testing.T, d *device) {
		// Some libraries take from an allocator, which may have it at hand, but pin it.
		space := func(m verbs.Memory) uint64 { return m.Virtual + m.Locked }
		cost := func(create func()) verbs.Memory {
			t.Helper()
			m, err := d.raw.Cost(create)
			if err != nil {
				t.Errorf("Cost: %v", err)
			}
			return m
		}
		if m := cost(func() {}); m != (verbs.Memory{}) {
			t.Errorf("no verb costs %+v", m)
		}
		// More than what an allocator has at hand.
		const entries = 4000
		// The least of several: an allocator or the runtime may take more at times.
		one := uint64(math.MaxUint64)
		var q *cq
		for range 3 {
			one = min(one, space(cost(func() { q = d.mustCQ(entries, nil, 0) })))
		}
		if one == 0 {
			t.Error("a CQ costs nothing")
		}
		if m := cost(func() {
			d.mustCQ(entries, nil, 0).mustClose()
			q.mustClose()
		}); space(m) < one {
			t.Errorf("a CQ costs %d bytes, and %+v as another is destroyed besides", one, m)
		}
		d.mustCQ(entries, nil, 0).mustClose()
		if m := cost(func() {}); m != (verbs.Memory{}) {
			t.Errorf("no verb costs %+v, after one that was not measured", m)
		}
	})
}
