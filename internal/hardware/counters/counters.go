// Package counters says what the counters of the kernel and of each driver mean: which
// metric one feeds, in which unit, how wide it is, and what it does when it is full. It
// is a table and reads nothing.
//
// A counter feeds a metric only where its source says that it counts just that. All others
// are to be had under the driver's own names.
package counters

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
)

// A Scope is what a metric is told of.
type Scope string

// The scopes.
const (
	// ScopePort: the labels are device and port.
	ScopePort Scope = "port"
	// ScopeDevice: the label is device. No metric is of this yet.
	ScopeDevice Scope = "device"
)

// A Metric is a counter that means the same whatever driver it is of.
type Metric struct {
	// Name is the whole name, Unit what it counts, and Help a sentence without its full
	// stop.
	Name  string
	Unit  string
	Help  string
	Scope Scope
	// Priority tells that there is one for each Ethernet priority, with a label of that
	// name.
	Priority bool
}

// A Row is what is known of one counter.
type Row struct {
	// Group and Name are as those of [state.Counter]. An N at the end of Name stands for
	// an Ethernet priority, from 0 to 7.
	Group state.CounterGroup
	Name  string
	// Metric is the name of the metric that it feeds, empty for none. Rows of one table
	// that have the same Metric are names of different versions of the driver, of which
	// the first that is there counts; or terms of a sum, with Sum, of which all must be
	// there.
	Metric string
	Sum    bool
	// Factor is what one of it is in the unit of the metric.
	Factor uint64
	// Width is how many bits it has. Narrow is how many it has on devices without the
	// wider form, 0 if there are none.
	Width  int
	Narrow int
	// Saturates tells that it stays at all ones until somebody resets it. Others begin
	// anew at 0.
	Saturates bool
	// Level tells that it is no counter, but goes up and down, or is the most so far.
	Level bool
	// Meaning is what it counts, Source where that was read, and Raw why it feeds no
	// metric, all sentences.
	Meaning string
	Source  string
	Raw     string
}

// A Value is that of a metric of one port.
type Value struct {
	Metric string
	Value  uint64
	// Counter is the name of the counter that it is of, or those of the terms of a sum
	// with + between them.
	Counter string
	// Priority is the Ethernet priority, empty where the metric has none.
	Priority string
}

// A Table is the rows of one driver.
type Table struct {
	// Name is that of the driver, in the words of rdma-core, such as mlx5. It is empty for
	// the rows that apply to every device.
	Name string
	// Buses are other names of the driver, such as that of its PCI device.
	Buses []string
	// Note says what else there is to know of it, in whole sentences; it may be empty.
	Note string
	// Ethernet are the counters of counters/ that the driver sets for ports with Ethernet,
	// nil for all. The others are 0 there for ever, and feed nothing.
	Ethernet []string
	Rows     []Row
}

// TableOf returns the name of the table for a driver, such as mlx5 for mlx5 and for
// mlx5_core; empty if there is none. What applies to every device is known of that, too.
func TableOf(driver string) string {
	if driver == "" {
		return ""
	}
	all := drivers()
	// To make all tables takes longer than to read a device.
	for _, d := range all {
		if d.name == driver {
			return d.name
		}
	}
	for _, d := range all {
		if slices.Contains(d.table().Buses, driver) {
			return d.name
		}
	}
	return ""
}

// Of returns the metrics that the counters of a port with a link layer feed, in the order of
// [Metrics]. It is not for those of a device: they may have the names of the ports', and be their sum.
// Those that are saturated are left out, and with them the metric: the same one is never
// fed by another counter in their stead, which has counted something else.
func Of(table, linkLayer string, counters []state.Counter) []Value {
	feeds := make(map[string][]*Row)
	rows := rowsOf(table)
	var set []string // of counters/, if not all are
	if linkLayer == "Ethernet" {
		set = tableNamed(table).Ethernet
	}
	for i := range rows {
		if r := &rows[i]; set == nil || r.Group != state.GroupPort || slices.Contains(set, r.Name) {
			feeds[r.Metric] = append(feeds[r.Metric], r)
		}
	}
	var values []Value
	for _, m := range Metrics() {
		feeds := feeds[m.Name]
		switch {
		case len(feeds) == 0:
		case m.Priority:
			values = append(values, priorities(feeds[0], counters)...)
		case feeds[0].Sum:
			values = appendSum(values, feeds, counters)
		default:
			for _, r := range feeds {
				if _, ok := find(r.Group, r.Name, counters); ok {
					values = appendSum(values, []*Row{r}, counters)
					break
				}
			}
		}
	}
	return values
}

// appendSum appends the sum of all rows, if each is there and tells a number.
func appendSum(values []Value, rows []*Row, counters []state.Counter) []Value {
	v := Value{Metric: rows[0].Metric}
	for i, r := range rows {
		c, ok := find(r.Group, r.Name, counters)
		high, low := bits.Mul64(c.Value, r.Factor)
		sum, carry := bits.Add64(v.Value, low, 0)
		if !ok || r.full(c.Value) || high != 0 || carry != 0 {
			return values
		}
		v.Value = sum
		if i > 0 {
			v.Counter += "+"
		}
		v.Counter += c.Name
	}
	return append(values, v)
}

// priorities returns the values of a metric that has one for each priority.
func priorities(r *Row, counters []state.Counter) []Value {
	var values []Value
	for priority := '0'; priority <= '7'; priority++ {
		name := strings.TrimSuffix(r.Name, "N") + string(priority)
		if c, ok := find(r.Group, name, counters); ok && !r.full(c.Value) {
			values = append(values, Value{r.Metric, c.Value, c.Name, string(priority)})
		}
	}
	return values
}

// find returns the counter of a name.
func find(group state.CounterGroup, name string, counters []state.Counter) (state.Counter, bool) {
	for i := range counters {
		if c := &counters[i]; c.Group == group && c.Name == name {
			return *c, true
		}
	}
	return state.Counter{}, false
}

// full tells whether a value is all ones, and no number for that.
func (r *Row) full(value uint64) bool {
	switch {
	case r.Level:
		return false
	case value == math.MaxUint64:
		// No counter gets there by counting: it is what a driver tells that could not
		// read one.
		return true
	default:
		return r.Saturates && (value == ones(r.Width) || r.Narrow > 0 && value == ones(r.Narrow))
	}
}

// ones returns the largest value of a width.
func ones(width int) uint64 { return math.MaxUint64 >> (64 - width) }

// Saturated tells whether a counter is all ones of its width and stays so, or of 64 bits:
// what it counts is not known any more.
func Saturated(table string, c state.Counter) bool {
	if c.Value&(c.Value+1) != 0 || c.Value < ones(4) {
		return false // The most are, and need no table.
	}
	return rowOf(table, c.Group, c.Name).full(c.Value)
}

// Width returns after how many bits a counter begins anew at 0: one that is lower than
// before, and was not near there, was reset. It is 64, where no counter gets, of those
// that stay at all ones instead, and of those that are not known; 0 of what is no counter.
func Width(table string, group state.CounterGroup, name string) int {
	switch r := rowOf(table, group, name); {
	case r.Level:
		return 0
	case r.Saturates:
		return 64
	default:
		return r.Width
	}
}

// Level tells whether what a driver has among its counters is none: it goes up and down,
// or is the most so far.
func Level(table string, group state.CounterGroup, name string) bool {
	return rowOf(table, group, name).Level
}

// rowOf returns the row of a counter. Of one that is not known it has only a width.
func rowOf(table string, group state.CounterGroup, name string) *Row {
	for _, rows := range [][]Row{tableNamed(table).Rows, common().Rows} {
		for i := range rows {
			if r := &rows[i]; r.Group == group && (r.Name == name || r.Group == state.GroupEthtool && matches(r.Name, name)) {
				return r
			}
		}
	}
	return &Row{Width: 64}
}

// matches tells whether a name with an N at its end stands for another.
func matches(pattern, name string) bool {
	prefix, ok := strings.CutSuffix(pattern, "N")
	return ok && len(name) == len(pattern) && strings.HasPrefix(name, prefix) && name[len(prefix)] >= '0' && name[len(prefix)] <= '7'
}

// rowsOf returns what is known of the counters of a device with a table: its own rows,
// then those for every device. Where the driver's own rows feed a metric, or say
// something else of the same counter, the others feed none.
func rowsOf(table string) []Row {
	own, rows := tableNamed(table).Rows, common().Rows
	for i := range rows {
		r := &rows[i]
		for j := range own {
			if o := &own[j]; o.Metric == r.Metric || o.Group == r.Group && o.Name == r.Name {
				r.Metric = ""
				break
			}
		}
	}
	return append(own, rows...)
}

// tableNamed returns the table of a driver, an empty one if it has none.
func tableNamed(name string) Table {
	for _, d := range drivers() {
		if d.name == name {
			return d.table()
		}
	}
	return Table{}
}
