// Package counters describes the counters of the kernel and of each driver: which metric one
// feeds, in which unit, how wide it is, and what it does at its maximum. It is a table and reads
// nothing.
//
// A counter feeds a metric only if its source says that it counts exactly that. All others are
// available under the driver's own names.
package counters

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
)

// Names of labels of a [Metric].
const (
	LabelPriority  = "priority"
	LabelDirection = "direction"
)

// A Metric means the same for every driver. Its labels are device and port.
type Metric struct {
	// Name is the full name, Unit what it counts, and Help a sentence without its full stop.
	Name string
	Unit string
	Help string
	// Label is the name of a further label, empty if it has none. With [LabelPriority] there is
	// one for each Ethernet priority.
	Label string
	// Rare is true if it is absent until it is first not 0.
	Rare bool
}

// A Row describes one counter.
type Row struct {
	// Group and Name are as in [state.Counter]. An N in the name of a network device's counter
	// stands for an Ethernet priority, from 0 to 7.
	Group state.CounterGroup
	Name  string
	// Metric is the name of the metric that it feeds. Empty means none. Rows of one table with
	// the same Metric are names of different versions of the driver, and the first that exists
	// counts. With Sum they are terms of a sum, and all must exist.
	Metric string
	Sum    bool
	// Factor converts to the unit of the metric, and then Divisor, if it is not zero.
	Factor  uint64
	Divisor uint64
	// Label is the value of the metric's label, if that is not the priority.
	Label string
	// LinkLayer is Ethernet if it feeds the metric for those ports only, and InfiniBand if it
	// feeds it for all others. Empty means that it does for each port.
	LinkLayer string
	// Width is its size in bits. Narrow is the size on devices without the wider form. Zero
	// means that there are none.
	Width  int
	Narrow int
	// Saturates is true if it stays at all ones until it is reset. Others wrap to 0.
	Saturates bool
	// VFUncounted is true if virtual functions may show 0 because they do not count. Then a 0 counts
	// only for a function that can have virtual ones.
	VFUncounted bool
	// Level is true if it is a gauge or a high-water mark, not a counter.
	Level bool
	// Meaning is what it counts, Source where that was read, and Raw why it feeds no metric, all
	// in sentences.
	Meaning string
	Source  string
	Raw     string
}

// A Value is the value of a metric of one port.
type Value struct {
	Metric string
	Value  float64
	// Counter is the name of its counter. The names of the terms of a sum are joined by +.
	Counter string
	// Label is the value of the metric's further label, such as the Ethernet priority.
	Label string
	// Rare is as in [Metric].
	Rare bool
}

// A Table is the rows of one driver.
type Table struct {
	// Name is the driver in the words of rdma-core, such as mlx5. It is empty for the rows that
	// apply to every device.
	Name string
	// Buses are other names of the driver, such as that of its PCI device.
	Buses []string
	// Note has further facts, in sentences. It may be empty.
	Note string
	// Ethernet are the counters of counters/ that the driver sets for Ethernet ports, and for
	// virtual functions. Nil means all. The others are always 0 there, and feed nothing.
	Ethernet []string
	// PerFunction is true if hw_counters/ of each port are those of the function.
	PerFunction bool
	Rows        []Row
}

// TableOf returns the name of the table for a driver, such as mlx5 for mlx5 and for mlx5_core.
// It is empty if there is none. The rows for every device apply to that, too.
func TableOf(driver string) string {
	for name, table := range drivers() {
		if name == driver || slices.Contains(table().Buses, driver) {
			return name
		}
	}
	return ""
}

// PerFunction reports whether a driver shows the same counters in hw_counters/ of each port.
func PerFunction(table string) bool { return tableNamed(table).PerFunction }

// Values returns the metrics that the counters of a port feed, in the order of [Metrics]. Those of
// the device count for an uplink only: elsewhere they may be the sum of the ports'.
// Saturated counters are left out with their metric. Another counter never replaces them, since
// its value would look like a jump.
func Values(h *state.Hardware, p *state.HardwarePort) []Value {
	t, counters, role := tableNamed(h.Table), p.Counters, h.Identity.Role
	rows, feeds := rowsOf(t), make(map[string][]*Row)
	if p.Uplink {
		counters = slices.Concat(counters, h.Counters)
	}
	var set []string // of counters/, if not all are
	if p.LinkLayer == "Ethernet" || role == "vf" {
		set = t.Ethernet
	}
	for i := range rows {
		r := &rows[i]
		if r.Metric == "" || set != nil && r.Group == state.GroupPort && !slices.Contains(set, r.Name) ||
			r.LinkLayer != "" && (r.LinkLayer == "Ethernet") != (p.LinkLayer == "Ethernet") {
			continue
		}
		// In a virtual machine nothing says that a function is a virtual one.
		if r.VFUncounted && role != "pf" {
			if c, _ := find(r.Group, r.Name, counters); c.Value == 0 {
				continue
			}
		}
		feeds[r.Metric] = append(feeds[r.Metric], r)
	}
	var values []Value
	for _, m := range Metrics() {
		feeds, before := feeds[m.Name], len(values)
		switch {
		case len(feeds) == 0:
		case m.Label == LabelPriority:
			values = appendPriorities(values, feeds[0], counters)
		case m.Label != "":
			for _, r := range feeds {
				values = appendSum(values, []*Row{r}, counters)
			}
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
		for i := before; i < len(values); i++ {
			values[i].Rare = m.Rare
			if m.Unit == "seconds" && len(p.Members) > 1 {
				values[i].Value /= float64(len(p.Members)) // A share of the time is the mean of a bond's members.
			}
		}
	}
	return values
}

// appendSum appends the sum of all rows, if each exists and has a value.
func appendSum(values []Value, rows []*Row, counters []state.Counter) []Value {
	v := Value{Metric: rows[0].Metric, Label: rows[0].Label}
	total := uint64(0)
	for i, r := range rows {
		c, ok := find(r.Group, r.Name, counters)
		high, low := bits.Mul64(c.Value, r.Factor)
		sum, carry := bits.Add64(total, low, 0)
		if !ok || r.full(c.Value) || high != 0 || carry != 0 {
			return values
		}
		total = sum
		if i > 0 {
			v.Counter += "+"
		}
		v.Counter += c.Name
	}
	v.Value = float64(total) / float64(max(rows[0].Divisor, 1))
	return append(values, v)
}

func appendPriorities(values []Value, r *Row, counters []state.Counter) []Value {
	for priority := '0'; priority <= '7'; priority++ {
		row := *r
		row.Label, row.Name = string(priority), strings.Replace(r.Name, "N", string(priority), 1)
		values = appendSum(values, []*Row{&row}, counters)
	}
	return values
}

func find(group state.CounterGroup, name string, counters []state.Counter) (state.Counter, bool) {
	for i := range counters {
		if c := &counters[i]; c.Group == group && c.Name == name {
			return *c, true
		}
	}
	return state.Counter{}, false
}

// full reports whether a value is all ones, so that it is not a count.
func (r *Row) full(value uint64) bool {
	switch {
	case r.Level:
		return false
	case value == math.MaxUint64:
		// No counter counts that far. Drivers report it if they cannot read a counter.
		return true
	default:
		return r.Saturates && (value == ones(r.Width) || r.Narrow > 0 && value == ones(r.Narrow))
	}
}

func ones(width int) uint64 { return math.MaxUint64 >> (64 - width) }

// Saturated reports whether a counter has reached its maximum and stays there, or is 64 ones.
func Saturated(table string, c state.Counter) bool {
	if c.Value&(c.Value+1) != 0 || c.Value < ones(4) {
		return false // most counters; they need no table
	}
	return rowOf(table, c.Group, c.Name).full(c.Value)
}

// Width returns the number of bits after which a counter wraps to 0. A counter that decreased
// and was not near that maximum was reset. It is 64, which no counter reaches, for saturating and
// unknown counters, and 0 for levels.
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

// Level reports whether a value is a gauge or a high-water mark, not a counter.
func Level(table string, group state.CounterGroup, name string) bool {
	return rowOf(table, group, name).Level
}

// rowOf returns the row of a counter. The row of an unknown one has only a width.
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

// matches reports whether a pattern stands for a name: it is the same, or has an N in place of a
// priority.
func matches(pattern, name string) bool {
	prefix, suffix, ok := strings.Cut(pattern, "N")
	if !ok {
		return pattern == name
	}
	priority, ok := strings.CutPrefix(name, prefix)
	priority, ok2 := strings.CutSuffix(priority, suffix)
	return ok && ok2 && len(priority) == 1 && priority >= "0" && priority <= "7"
}

// OfNetdev returns a function that reports whether a driver's table has a counter of ethtool -S. It
// is nil if the table has none.
func OfNetdev(table string) func(name string) bool {
	var patterns []string
	for _, r := range tableNamed(table).Rows {
		if r.Group == state.GroupEthtool {
			patterns = append(patterns, r.Name)
		}
	}
	if patterns == nil {
		return nil
	}
	return func(name string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, name) })
	}
}

// rowsOf returns the rows that apply to a device with a table: its own, then those for every
// device. The latter feed no metric that the driver's own rows feed for the same ports, and none if
// the driver has another row for the same counter.
func rowsOf(t Table) []Row {
	own, rows := t.Rows, common().Rows
	for i := range rows {
		r := &rows[i]
		for j := range own {
			o := &own[j]
			feeds := o.Metric == r.Metric && (o.LinkLayer == "" || o.LinkLayer == r.LinkLayer)
			if feeds || o.Group == r.Group && o.Name == r.Name {
				r.Metric = ""
				break
			}
		}
	}
	return append(own, rows...)
}

// tableNamed returns an empty table if the driver has none.
func tableNamed(name string) Table {
	if table := drivers()[name]; table != nil {
		return table()
	}
	return Table{}
}
