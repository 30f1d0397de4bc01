package simulated

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/verbs"
)

// Validate returns everything that is wrong with the profile, in one line.
func (p *Profile) Validate() error {
	v := new(validator)
	v.value("", reflect.ValueOf(*p), "")
	names := make(map[string]bool)
	for i := range p.Devices {
		d := &p.Devices[i]
		at := fmt.Sprintf("devices[%d].", i)
		v.demand(!names[d.Name], at+"name", "the name %q is taken already; give each device a name of its own", d.Name)
		names[d.Name] = true
		v.device(at, d)
	}
	if len(v.problems) == 0 {
		return nil
	}
	return errors.New(" " + strings.Join(v.problems, "; "))
}

// validator collects what is wrong with a profile.
type validator struct{ problems []string }

// demand adds a problem unless ok.
func (v *validator) demand(ok bool, at, format string, args ...any) {
	if !ok {
		v.problems = append(v.problems, at+": "+fmt.Sprintf(format, args...))
	}
}

// value checks a value, and all in it, by the tags of its field.
func (v *validator) value(at string, of reflect.Value, tag reflect.StructTag) {
	switch of.Kind() {
	case reflect.Struct:
		for i := range of.NumField() {
			f := of.Type().Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			v.value(strings.TrimPrefix(at+"."+key, "."), of.Field(i), f.Tag)
		}
	case reflect.Slice:
		for i := range of.Len() {
			v.value(fmt.Sprintf("%s[%d]", at, i), of.Index(i), tag)
		}
	case reflect.Map:
		for key, element := range of.Seq2() {
			name := fmt.Sprintf("%s.%v", at, key)
			v.word(name, key.String(), tag.Get("keys"))
			v.value(name, element, tag)
			if element.Kind() == reflect.String {
				v.word(name, element.String(), tag.Get("of"))
			}
		}
	case reflect.String:
		if of.String() != "" || !strings.HasSuffix(tag.Get("yaml"), ",omitempty") {
			v.word(at, of.String(), tag.Get("of"))
		}
	case reflect.Int, reflect.Int64:
		low, high := int64(0), int64(math.MaxInt64)
		if of.Kind() == reflect.Int {
			high = math.MaxInt32
		}
		if a, b, ok := strings.Cut(tag.Get("in"), "-"); ok {
			low, _ = strconv.ParseInt(a, 10, 64)
			high, _ = strconv.ParseInt(b, 10, 64)
		}
		v.demand(of.Int() >= low && of.Int() <= high, at, "%v is out of range; the lowest is %d, the highest %d", of, low, high)
	}
}

// word checks that a word is on a list.
func (v *validator) word(at, word, list string) {
	if list == "" {
		return
	}
	valid := words(list)
	hint := ""
	if word != "" {
		near := slices.DeleteFunc(slices.Clone(valid), func(w string) bool { return !similar(w, word) })
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
		if len(near) == 0 {
			hint = "; valid are " + strings.Join(valid, ", ")
		}
	}
	v.demand(slices.Contains(valid, word), at, "unknown %s %q%s", list, word, hint)
}

// similar reports whether one word becomes the other if one byte is inserted, removed or
// replaced.
func similar(a, b string) bool {
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return max(len(a), len(b))-start-end <= 1
}

// words returns the list of a tag.
func words(list string) []string {
	switch list {
	case "transport":
		return named(verbs.TransportIB, verbs.TransportUnspecified)
	case "port state":
		return named(verbs.PortNop, verbs.PortActiveDefer)
	case "link layer":
		return named(verbs.LinkUnspecified, verbs.LinkEthernet)
	case "GID type":
		return named(verbs.GIDTypeIB, verbs.GIDTypeRoCEv2)
	case "qp type":
		return named(verbs.RC, verbs.SRD)
	case "status":
		return named(verbs.WCSuccess+1, verbs.WCGeneralErr)
	case "asynchronous event":
		return named(verbs.EventCQErr, verbs.EventWQFatal)
	case "rounding":
		return []string{RoundingExact, RoundingRXE, RoundingIB}
	case "verb":
		var names []string
		for _, v := range verbs.Verbs() {
			names = append(names, string(v))
		}
		return names
	case "errno":
		return slices.Sorted(maps.Keys(errnos()))
	case "contract":
		return Contracts()
	case "hardware fault":
		return HardwareFaults()
	case "completion fault":
		return completionFaultNames()
	case "path":
		return []string{PathLoopback, PathFlush}
	default:
		return resourceWords(list)
	}
}

// errnos returns each errno by its symbol. ENOTSUP is another name of EOPNOTSUPP.
func errnos() map[string]syscall.Errno {
	all := map[string]syscall.Errno{verbs.ErrnoName(verbs.NoErrno): verbs.NoErrno, "ENOTSUP": syscall.EOPNOTSUPP}
	const highest = 200 // above every errno that has a symbol
	for n := syscall.Errno(1); n <= highest; n++ {
		if unix.ErrnoName(n) != "" {
			all[verbs.ErrnoName(n)] = n
		}
	}
	return all
}

// device checks what no tag says about a device.
func (v *validator) device(at string, d *DeviceProfile) {
	matches := func(s, pattern string) bool { return regexp.MustCompile("^(?:" + pattern + ")$").MatchString(s) }
	// The name becomes a label and a path in reports. The kernel allows 63 bytes.
	v.demand(matches(d.Name, `[0-9A-Za-z][0-9A-Za-z_.-]{0,62}`), at+"name",
		"%q is no name for a device; write up to 63 letters, digits, underscores, dots and dashes, as in sim_rxe0", d.Name)
	v.demand(d.Like == "", at+"like", "only ParseProfile resolves it")
	v.demand(matches(d.Driver, `[0-9a-z_]{0,32}`), at+"driver", "%q is no name for a driver; write it like bnxt_re", d.Driver)
	v.demand(matches(d.Kernel, `|[0-9]+\.[0-9]+[0-9A-Za-z.+~_-]{0,56}`), at+"kernel", "%q is no release of a kernel; write it like 6.1, in quotes", d.Kernel)
	v.demand(len(d.Firmware) <= 63, at+"fw_version", "it has more than 63 bytes")
	_, ok := parseGUID(d.NodeGUID)
	v.demand(ok, at+"node_guid", "%q is no GUID; write it like 5254:00ff:fe12:3456", d.NodeGUID)
	v.demand(len(d.Ports) > 0, at+"ports", "describe at least one port")
	for i, p := range d.Ports {
		at := fmt.Sprintf("%sports[%d].", at, i)
		v.demand(p.Number == i+1, at+"number", "it is %d; number the ports from 1 without gaps", p.Number)
		v.demand(validMTU(p.ActiveMTU), at+"active_mtu", "%d is no MTU; write 256, 512, 1024, 2048 or 4096", p.ActiveMTU)
		for j, g := range p.GIDs {
			_, ok := parseGID(g.GID)
			v.demand(ok, fmt.Sprintf("%sgids[%d].gid", at, j), "%q is no GID; write it as an IPv6 address, like fe80::1 or ::ffff:192.0.2.1", g.GID)
		}
	}
	v.demand(len(d.QPTypes) > 0, at+"qp_types", "list some of %s", strings.Join(words("qp type"), ", "))
	v.demand(d.Limits.MaxMRSize > 0, at+"limits.max_mr_size", "it is missing")
	jitter := d.CompletionLatency.Jitter
	v.demand(jitter >= 0 && jitter <= 1, at+"completion_latency.jitter", "%v is out of range; write a number from 0 to 1", jitter)
	for i, f := range d.Faults {
		v.fault(fmt.Sprintf("%sfaults[%d]", at, i), f)
	}
	for i, f := range d.CompletionFaults {
		at := fmt.Sprintf("%scompletion_faults[%d]", at, i)
		v.demand((f.Fault == FaultFailCompletion) == (f.Status != ""), at+".status", "%s takes a status, and nothing else does", FaultFailCompletion)
		v.demand((f.Fault == FaultDelayEvent) == (f.Delay != 0), at+".delay", "%s takes a delay, and nothing else does", FaultDelayEvent)
		v.demand(f.Fault != FaultSpuriousEvent || f.Path == "", at+".path", "leave it out; an arming is on no path")
	}
	for i := range d.Resources.Holders {
		v.holder(fmt.Sprintf("%sresources.holders[%d]", at, i), &d.Resources.Holders[i])
	}
}

func (v *validator) fault(at string, f Fault) {
	actions := 0
	for _, set := range []bool{f.Errno != "", f.Short != 0, f.Ignore, f.Delay != 0, f.Hang, f.Crash} {
		if set {
			actions++
		}
	}
	v.demand(actions == 1, at, "it has %d actions; give exactly one of errno, short, ignore, delay, hang and crash", actions)
	v.demand(f.Short == 0 || slices.Contains(sizingVerbs(), f.Verb), at+".short", "%s returns no size; these do: %v", f.Verb, sizingVerbs())
	v.demand(!f.Ignore || slices.Contains(ignorableVerbs(), f.Verb), at+".ignore", "%s returns something; these do not: %v", f.Verb, ignorableVerbs())
}

// sizingVerbs are the verbs that return sizes.
func sizingVerbs() []verbs.Verb {
	return []verbs.Verb{verbs.CreateCQ, verbs.ResizeCQ, verbs.CreateSRQ, verbs.QuerySRQ, verbs.CreateQP, verbs.QueryQP}
}

// ignorableVerbs are verbs that return nothing.
func ignorableVerbs() []verbs.Verb {
	return []verbs.Verb{verbs.ReqNotifyCQ, verbs.ModifySRQ, verbs.PostSRQRecv, verbs.ModifyQP, verbs.PostSend, verbs.PostRecv}
}

func (v *validator) holder(at string, h *Holder) {
	owners := 0
	for _, set := range []bool{h.PID != 0, h.Kernel != "", h.Dead} {
		if set {
			owners++
		}
	}
	v.demand(owners == 1, at, "it has %d owners; give exactly one of pid, kernel and dead", owners)
	_, err := time.Parse(time.RFC3339, h.Ends)
	v.demand(h.Ends == "" || err == nil, at+".ends", "%q is no time; write it like 2026-03-01T12:00:00Z", h.Ends)
	v.demand(len(h.Kernel) <= maxModule && !strings.Contains(h.Kernel, "\x00"), at+".kernel", "%q is no name of a kernel module", h.Kernel)
	v.demand(len(h.Comm) <= maxComm && !strings.Contains(h.Comm, "\x00"), at+".comm", "%q is no name of a command; write up to 15 bytes, none of them 0", h.Comm)
	v.demand(h.Cgroup == "" || strings.HasPrefix(h.Cgroup, "/") && len(h.Cgroup) <= maxCgroup && !strings.ContainsAny(h.Cgroup, "\n\x00"),
		at+".cgroup", "%q is no path of a cgroup; write it like /system.slice/slurmd.service", h.Cgroup)
	v.demand(len(h.RDMAMax) == 0 || len(h.Cgroup) > 1, at+".rdma_max", "only a cgroup below the root has limits")
}

// named returns the names of an enumeration from its first value to its last.
func named[T interface {
	~int
	String() string
}](first, last T,
) []string {
	var names []string
	for t := first; t <= last; t++ {
		names = append(names, t.String())
	}
	return names
}

// value returns the value of an enumeration that has a valid name.
func value[T interface {
	~int
	String() string
}](name string, first, last T,
) T {
	return first + T(max(0, slices.Index(named(first, last), name)))
}

func validMTU(bytes int) bool {
	return slices.Contains([]int{256, 512, 1024, 2048, 4096}, bytes)
}

// parseGUID parses a GUID as GUID.String writes it.
func parseGUID(s string) (g verbs.GUID, ok bool) {
	if !regexp.MustCompile(`^[0-9a-fA-F]{4}(:[0-9a-fA-F]{4}){3}$`).MatchString(s) {
		return g, false
	}
	_, err := hex.Decode(g[:], []byte(strings.ReplaceAll(s, ":", "")))
	return g, err == nil
}

// parseGID parses a GID as GID.String writes it.
func parseGID(s string) (verbs.GID, bool) {
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		return verbs.GID{}, false
	}
	return addr.As16(), true
}
