package hardware

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
)

// maxCounters limits the counters of a group that are read.
const maxCounters = 512

// counters reads the groups of counters of a port.
func (d *device) counters(p *state.HardwarePort, dir string) {
	read := func(group state.CounterGroup) {
		counters, refused := d.group(Group{Port: p.Number, Group: group}, filepath.Join(dir, string(group)))
		p.Counters = append(p.Counters, counters...)
		p.Refused = append(p.Refused, refused...)
	}
	read(state.GroupPort)
	if p.Number == 1 || !counters.PerFunction(d.table) {
		if found := d.statistics(p.Number); len(found) > 0 {
			p.Counters = append(p.Counters, found...)
		} else {
			read(state.GroupHardware)
		}
	}
	p.Counters = append(p.Counters, d.ethtool(p)...)
}

// statistics returns the counters of a port that the kernel reports over netlink.
func (d *device) statistics(port int) []state.Counter {
	if d.Statistics == nil || d.skips(Group{Port: port, Group: state.GroupHardware}) {
		return nil
	}
	if d.begin(fmt.Sprintf("rdma statistic of port %d", port)) != nil {
		return nil
	}
	defer d.end()
	found, err := d.Statistics.Statistics(d.ctx, d.Device, port)
	if err != nil {
		return nil // Reading sysfs will show why.
	}
	return valid(found, state.GroupHardware)
}

// ethtool returns the counters of a port's network device. A bond has none, so they are the sums of
// its members. A counter that one of them lacks is absent.
func (d *device) ethtool(p *state.HardwarePort) []state.Counter {
	if d.Ethtool == nil || p.Ifindex == 0 || d.skips(Group{Port: p.Number, Group: state.GroupEthtool}) {
		return nil
	}
	if p.Bond == "" || p.Bond != p.Netdev {
		return withoutReason(p, d.askEthtool(p.Netdev))
	}
	p.Members, _ = d.members(p.Bond)
	var sums []state.Counter
	for i, member := range p.Members {
		found := withoutReason(nil, d.askEthtool(member))
		if i == 0 {
			sums = found
			continue
		}
		values := make(map[string]uint64)
		for _, c := range found {
			values[c.Name] = c.Value
		}
		sums = slices.DeleteFunc(sums, func(c state.Counter) bool {
			value, ok := values[c.Name]
			return !ok || value > math.MaxUint64-c.Value
		})
		for i := range sums {
			sums[i].Value += values[sums[i].Name]
		}
	}
	return sums
}

// withoutReason returns the counters without why a link is down, which it stores in p, if not nil.
func withoutReason(p *state.HardwarePort, all []state.Counter) []state.Counter {
	return slices.DeleteFunc(all, func(c state.Counter) bool {
		isReason, n := c.Name == state.LinkDownReason, int(c.Value)
		if !isReason && c.Name != state.LinkDownDetail {
			return false
		}
		switch {
		case p == nil:
		case isReason:
			p.LinkDownReason = &n
		default:
			p.LinkDownDetail = &n
		}
		return true
	})
}

func (d *device) askEthtool(netdev string) []state.Counter {
	if d.begin("ethtool statistics of "+netdev) != nil {
		return nil
	}
	defer d.end()
	found, _ := d.Ethtool.Counters(d.ctx, netdev, counters.OfNetdev(d.table)) // Most drivers have only some of them.
	return valid(found, state.GroupEthtool)
}

// valid returns the counters whose names can be shown, each name once, as counters of a group.
func valid(found []state.Counter, group state.CounterGroup) []state.Counter {
	counters := make([]state.Counter, 0, min(len(found), maxCounters))
	seen := make(map[string]bool)
	for _, c := range found {
		if !isName(c.Name) || seen[c.Name] || len(counters) == maxCounters {
			continue
		}
		seen[c.Name] = true
		c.Group = group
		counters = append(counters, c)
	}
	return counters
}

func (d *device) skips(g Group) bool { return slices.Contains(d.Skip, g) }

// group reads a group of counters from its directory. Some drivers, as of a restricted function,
// refuse each counter and write a line to the kernel's log each time, so the group ends with the
// first that is refused. refused has at most one element.
func (d *device) group(g Group, dir string) (counters []state.Counter, refused []state.RefusedCounters) {
	if d.skips(g) {
		return nil, nil
	}
	names, _ := d.list(dir, maxEntries) // Not every driver has each group.
	for _, name := range names {
		// The lifespan is how long the kernel caches the counters.
		if name == "lifespan" || !isName(name) || len(counters) == maxCounters {
			continue
		}
		value, err := d.counter(filepath.Join(dir, name))
		switch {
		case err == nil:
			counters = append(counters, state.Counter{Group: g.Group, Name: name, Value: value})
			continue
		case d.ctx.Err() != nil:
			return counters, refused
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, errNotCounted):
			continue
		}
		if refused == nil {
			refused = []state.RefusedCounters{{Group: g.Group, Errno: errno(err), Detail: clean(name + ": " + cause(err))}}
		}
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EIO) || errors.Is(err, fs.ErrPermission) {
			return counters, refused
		}
	}
	return counters, refused
}

// errNotCounted is the error of a file for a counter that the device does not have.
var errNotCounted = errors.New("is not counted")

// counter reads a number, which is decimal or, with some drivers, hexadecimal after 0x.
func (d *device) counter(path string) (uint64, error) {
	content, err := d.file(path)
	if err != nil {
		return 0, err
	}
	content = strings.TrimSpace(content)
	if strings.HasPrefix(content, "N/A") { // so did counters/ in older kernels
		return 0, errNotCounted
	}
	base, digits := 10, content
	if hex, ok := strings.CutPrefix(content, "0x"); ok {
		base, digits = 16, hex
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no count", content[:min(len(content), 40)])
	}
	return n, nil
}

// cause returns the text of an error without the path.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// isName reports whether a text is a plausible name of a counter: printable ASCII.
func isName(s string) bool {
	return s != "" && len(s) <= maxText && !strings.ContainsFunc(s, func(c rune) bool {
		return c < ' ' || c > '~' || c == '"' || c == '\\'
	})
}
