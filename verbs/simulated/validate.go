package simulated

import (
	"cmp"
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

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"rdma_exporter/verbs"
)

// Validate returns everything that is wrong with the profile, each as a
// [*ProfileError]. A profile from ParseProfile is valid.
func (p *Profile) Validate() error {
	v := &validator{}
	v.profile(p)
	return v.err()
}

// validator collects what is wrong with a profile.
type validator struct {
	file string
	text []byte     // nil if the profile was not parsed
	root *yaml.Node // of the text, from the first question on where something stands
	errs []error
}

func (v *validator) err() error { return errors.Join(v.errs...) }

// report adds a problem.
func (v *validator) report(at path, remedy, format string, args ...any) {
	v.errs = append(v.errs, &ProfileError{
		File: v.file, Line: v.line(at), Where: at.String(), What: fmt.Sprintf(format, args...), Remedy: remedy,
	})
}

// oneOf reports a word that is none of the valid ones.
func (v *validator) oneOf(at path, what, word string, valid []string) {
	if slices.Contains(valid, word) {
		return
	}
	if word == "" {
		v.report(at, suggest(word, valid), "%s is missing", what)
		return
	}
	v.report(at, suggest(word, valid), "unknown %s %q", what, word)
}

// within reports a number that is out of range.
func (v *validator) within(at path, n, low, high int) {
	if n < low || n > high {
		v.report(at, fmt.Sprintf("write a number from %d to %d", low, high), "%d is out of range", n)
	}
}

// duration reports a duration that is negative.
func (v *validator) duration(at path, d time.Duration) {
	if d < 0 {
		v.report(at, "write how long it takes, like 250ms or 2s", "the duration %s is negative", d)
	}
}

func (v *validator) profile(p *Profile) {
	if p.Devices == nil && v.text != nil {
		v.report(path{"devices"}, "list devices, or write `devices: []` to simulate a host without any", "devices are missing")
	}
	first := make(map[string]int)
	for i := range p.Devices {
		d, at := &p.Devices[i], path{"devices", i}
		if before, ok := first[d.Name]; ok && d.Name != "" {
			v.report(at.to("name"), "give each device a name of its own", "the name %q is that of devices[%d] already", d.Name, before)
		} else {
			first[d.Name] = i
		}
		v.device(at, d)
	}
}

// isWord reports whether a text has no more than so many letters and digits of ASCII,
// and others that are given.
func isWord(s string, most int, others string) bool {
	return len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune(others, r)
	})
}

func (v *validator) device(at path, d *DeviceProfile) {
	// The name becomes a label and a path in reports; the kernel allows 63 bytes.
	if !isWord(d.Name, 63, "_.-") || d.Name == "" || strings.TrimLeft(d.Name, "_.-") != d.Name {
		v.report(at.to("name"), "write up to 63 letters, digits, underscores, dots and dashes, as in sim_rxe0", "%q is no name for a device", d.Name)
	}
	if d.Like != "" {
		v.report(at.to("like"), "only ParseProfile resolves it", "like is %q", d.Like)
	}
	if !isWord(d.Driver, 32, "_") || d.Driver != strings.ToLower(d.Driver) {
		v.report(at.to("driver"), "write up to 32 small letters, digits and underscores, as in bnxt_re", "%q is no name for a driver", d.Driver)
	}
	if d.Kernel != "" && !regexp.MustCompile(`^[0-9]+\.[0-9]+[0-9A-Za-z.+~_-]{0,56}$`).MatchString(d.Kernel) {
		v.report(at.to("kernel"), "write it like 6.1 or 6.1.0-13-amd64, in quotes", "%q is no release of a kernel", d.Kernel)
	}
	v.oneOf(at.to("transport"), "transport", d.Transport, transports())
	if len(d.Firmware) > 63 {
		v.report(at.to("fw_version"), "shorten it", "the firmware version has %d bytes, more than 63", len(d.Firmware))
	}
	if _, ok := parseGUID(d.NodeGUID); !ok {
		v.report(at.to("node_guid"), "write it like 5254:00ff:fe12:3456", "%q is no GUID", d.NodeGUID)
	}
	if len(d.Ports) == 0 {
		v.report(at.to("ports"), "describe at least one port", "the device has no port")
	}
	v.within(at.to("completion_vectors"), d.CompletionVectors, 1, math.MaxInt32)
	for i := range d.Ports {
		v.port(at.to("ports", i), i, &d.Ports[i])
	}
	if len(d.QPTypes) == 0 {
		v.report(at.to("qp_types"), "list some of "+strings.Join(qpTypes(), ", "), "the device has no QP types")
	}
	for i, t := range d.QPTypes {
		v.oneOf(at.to("qp_types", i), "QP type", t, qpTypes())
	}
	v.limits(at.to("limits"), d.Limits)
	v.within(at.to("max_inline_data"), d.MaxInlineData, 0, 1<<20)
	v.registration(at.to("registration"), d.Registration)
	v.rounding(at.to("rounding"), d.Rounding)
	v.duration(at.to("default_latency"), d.DefaultLatency)
	for _, verb := range sortedKeys(d.Latency) {
		// The path goes by way of the verb, so that the line is the key's.
		v.oneOf(at.to("latency", verb), "verb", string(verb), verbNames())
		v.duration(at.to("latency", verb), d.Latency[verb])
	}
	v.completionLatency(at.to("completion_latency"), d.CompletionLatency)
	for i, f := range d.Faults {
		v.fault(at.to("faults", i), f)
	}
	for i, f := range d.CompletionFaults {
		v.completionFault(at.to("completion_faults", i), f)
	}
	for i, contract := range d.Violate {
		v.oneOf(at.to("violate", i), "contract", contract, Contracts())
	}
	for i, event := range d.AsyncEvents {
		v.oneOf(at.to("async_events", i), "asynchronous event", event, asyncEventTypes())
	}
	for i, fault := range d.HardwareFaults {
		v.oneOf(at.to("hardware_faults", i), "fault of the hardware", fault, HardwareFaults())
	}
	v.resources(at.to("resources"), &d.Resources)
}

func (v *validator) port(at path, i int, p *PortProfile) {
	if p.Number != i+1 {
		v.report(at.to("number"), fmt.Sprintf("number the ports from 1 without gaps; this one is %d", i+1), "the port has number %d", p.Number)
	}
	v.within(at.to("number"), p.Number, math.MinInt32, math.MaxUint8)
	v.oneOf(at.to("state"), "port state", p.State, portStates())
	v.oneOf(at.to("link_layer"), "link layer", p.LinkLayer, linkLayers())
	if !validMTU(p.ActiveMTU) {
		v.report(at.to("active_mtu"), "write 256, 512, 1024, 2048 or 4096", "%d is no MTU", p.ActiveMTU)
	}
	v.within(at.to("pkeys"), p.PKeys, 0, math.MaxUint16)
	if p.GRHRequired && p.LinkLayer != verbs.LinkInfiniBand.String() {
		v.report(at.to("grh_required"), "leave it out: Ethernet always needs it", "grh_required on a port of %s", p.LinkLayer)
	}
	seen := make(map[int]bool)
	for i, g := range p.GIDs {
		gid := at.to("gids", i)
		v.within(gid.to("index"), g.Index, 0, math.MaxUint8)
		if seen[g.Index] {
			v.report(gid.to("index"), "give each GID an index of its own", "the GID index %d is taken already", g.Index)
		}
		seen[g.Index] = true
		if _, ok := parseGID(g.GID); !ok {
			v.report(gid.to("gid"), "write it as an IPv6 address, like fe80::1 or ::ffff:192.0.2.1", "%q is no GID", g.GID)
		}
		v.oneOf(gid.to("type"), "GID type", g.Type, gidTypes())
	}
}

func (v *validator) limits(at path, l Limits) {
	value := reflect.ValueOf(l)
	for i := range value.NumField() {
		key := yamlKey(value.Type().Field(i))
		low := 0
		switch key {
		case "max_mr_size":
			if l.MaxMRSize == 0 {
				v.report(at.to(key), "write a number of bytes", "%s is missing", key)
			}
			continue
		case "max_qp", "max_qp_wr", "max_sge", "max_cq", "max_cqe", "max_mr", "max_pd":
			low = 1 // without these no device is of any use
		}
		v.within(at.to(key), int(value.Field(i).Int()), low, math.MaxInt32)
	}
}

func (v *validator) rounding(at path, r Rounding) {
	recvWR, recvSGE := r.recv()
	if !slices.Equal(r.CQEntries.Queried, r.CQEntries.Created) {
		v.report(at.to("cq_entries"), "leave queried out", "no verb queries a CQ")
	}
	for _, reported := range []struct {
		key  string
		rule ReportedRule
	}{
		{"cq_entries", r.CQEntries},
		{"srq_wr", r.SRQWR},
		{"srq_sge", r.SRQSGE},
		{"qp_wr", r.QPWR},
		{"qp_sge", r.QPSGE},
		{"qp_inline", r.QPInline},
		{"qp_recv_wr", recvWR},
		{"qp_recv_sge", recvSGE},
	} {
		if reported.key == "qp_recv_wr" && r.QPRecvWR == nil || reported.key == "qp_recv_sge" && r.QPRecvSGE == nil {
			continue
		}
		v.rule(at.to(reported.key), reported.rule.Created)
		if !slices.Equal(reported.rule.Queried, reported.rule.Created) {
			v.rule(at.to(reported.key), reported.rule.Queried)
		}
		v.rule(at.to(reported.key), reported.rule.Usable)
	}
}

func (v *validator) rule(at path, r Rule) {
	for _, s := range r {
		low := 0
		switch {
		case slices.Contains(stepNames(), s.Name):
			continue
		case s.Name == RuleMultipleOf || s.Name == RuleTimes:
			low = 1
		case s.Name == RulePlus:
			low = -maxStep
		case !slices.Contains(numberedSteps(), s.Name):
			valid := stepNames()
			for _, name := range numberedSteps() {
				valid = append(valid, "{"+name+": N}")
			}
			v.report(at, suggest(s.Name, valid), "unknown rounding rule %q", s.Name)
			continue
		}
		if s.N < low || s.N > maxStep {
			v.report(at, fmt.Sprintf("write {%s: N} with N from %d to %d", s.Name, low, maxStep), "%s %d is out of range", s.Name, s.N)
		}
	}
}

func (v *validator) fault(at path, f Fault) {
	v.oneOf(at.to("verb"), "verb", string(f.Verb), verbNames())
	v.within(at.to("after"), f.After, 0, math.MaxInt32)
	v.within(at.to("times"), f.Times, 0, math.MaxInt32)
	var actions []string
	for _, action := range []struct {
		key string
		set bool
	}{
		{"errno", f.Errno != ""}, {"short", f.Short != 0}, {"ignore", f.Ignore}, {"delay", f.Delay != 0}, {"hang", f.Hang}, {"crash", f.Crash},
	} {
		if action.set {
			actions = append(actions, action.key)
		}
	}
	const remedy = "give exactly one of errno, short, ignore, delay, hang and crash"
	switch len(actions) {
	case 0:
		v.report(at, remedy, "the fault does nothing")
	case 1:
	default:
		v.report(at, remedy+", and write a fault for each", "the fault has %d actions: %s", len(actions), strings.Join(actions, ", "))
	}
	if _, ok := errnoNumber(f.Errno); f.Errno != "" && !ok {
		v.report(at.to("errno"), suggest(f.Errno, commonErrnos()), "unknown errno symbol %q", f.Errno)
	}
	if f.Short != 0 {
		v.within(at.to("short"), f.Short, 1, math.MaxInt32)
		if !slices.Contains(sizingVerbs(), f.Verb) {
			v.report(at.to("short"), "only these can: "+join(sizingVerbs()), "%s gives no size that could be short", f.Verb)
		}
	}
	if f.Ignore && !slices.Contains(ignorable(), f.Verb) {
		v.report(at.to("ignore"), "only these can: "+join(ignorable()), "%s gives something, and cannot be ignored", f.Verb)
	}
	v.duration(at.to("delay"), f.Delay)
	v.condition(at.to("when"), f.When)
}

func (v *validator) condition(at path, c Condition) {
	for _, list := range []struct {
		key, what    string
		words, valid []string
	}{
		{"qp_types", "type of queue pair", c.QPTypes, qpTypes()},
		{"states", "state", c.States, qpStates()},
		{"to", "state", c.To, qpStates()},
	} {
		for i, word := range list.words {
			v.oneOf(at.to(list.key, i), list.what, word, list.valid)
		}
	}
	for i, port := range c.Ports {
		v.within(at.to("ports", i), port, 1, math.MaxUint8)
	}
	for _, size := range sortedKeys(c.Above) {
		v.oneOf(at.to("above", size), "size", size, append(sortedKeys(capSizes(verbs.QPCap{})), lengthOfMR))
		v.within(at.to("above", size), c.Above[size], 0, math.MaxInt32)
	}
	for i, gid := range c.GIDs {
		v.within(at.to("gids", i), gid, 0, math.MaxUint8)
	}
}

func (v *validator) completionLatency(at path, l CompletionLatency) {
	v.duration(at.to("polled"), l.Polled)
	v.duration(at.to("notified"), l.Notified)
	if !(l.Jitter >= 0 && l.Jitter <= 1) { // NaN is neither
		v.report(at.to("jitter"), "write a number from 0 to 1", "%v is out of range", l.Jitter)
	}
	for _, vector := range sortedKeys(l.SlowVectors) {
		// As a key of a mapping; a number would be an index.
		key := at.to("slow_vectors", strconv.Itoa(vector))
		if vector < 0 {
			v.report(key, "completion vectors count from 0", "there is no completion vector %d", vector)
		}
		v.duration(key, l.SlowVectors[vector])
	}
}

func (v *validator) completionFault(at path, f CompletionFault) {
	v.oneOf(at.to("fault"), "fault", f.Fault, completionFaultNames())
	v.within(at.to("after"), f.After, 0, math.MaxInt32)
	v.within(at.to("times"), f.Times, 0, math.MaxInt32)
	switch {
	case f.Path == "":
	case f.Fault == FaultSpuriousEvent:
		v.report(at.to("path"), "leave it out", "%s acts when a CQ is armed, which is on no path", f.Fault)
	default:
		v.oneOf(at.to("path"), "path", f.Path, pathNames())
	}
	switch {
	case f.Fault == FaultFailCompletion:
		v.oneOf(at.to("status"), "status", f.Status, failedStatuses())
	case f.Status != "":
		v.report(at.to("status"), "leave it out", "only %s takes a status", FaultFailCompletion)
	}
	switch {
	case f.Fault == FaultDelayEvent && f.Delay == 0:
		v.report(at.to("delay"), "write how long it takes, like 250ms or 2s", "delay is missing")
	case f.Fault != FaultDelayEvent && f.Delay != 0:
		v.report(at.to("delay"), "leave it out", "only %s takes a delay", FaultDelayEvent)
	default:
		v.duration(at.to("delay"), f.Delay)
	}
}

// sizingVerbs are those that give sizes.
func sizingVerbs() []verbs.Verb {
	return []verbs.Verb{verbs.CreateCQ, verbs.ResizeCQ, verbs.CreateSRQ, verbs.QuerySRQ, verbs.CreateQP, verbs.QueryQP}
}

// ignorable are those that give nothing back.
func ignorable() []verbs.Verb {
	return []verbs.Verb{verbs.ReqNotifyCQ, verbs.ModifySRQ, verbs.PostSRQRecv, verbs.ModifyQP, verbs.PostSend, verbs.PostRecv}
}

func verbNames() []string {
	var names []string
	for _, v := range verbs.Verbs() {
		names = append(names, string(v))
	}
	return names
}

func join(list []verbs.Verb) string {
	var names []string
	for _, v := range list {
		names = append(names, string(v))
	}
	return strings.Join(names, ", ")
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

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

// value returns the value of an enumeration that has the name, which is valid.
func value[T interface {
	~int
	String() string
}](name string, first, last T,
) T {
	return first + T(max(0, slices.Index(named(first, last), name)))
}

func transports() []string { return named(verbs.TransportIB, verbs.TransportUnspecified) }
func portStates() []string { return named(verbs.PortNop, verbs.PortActiveDefer) }
func linkLayers() []string { return named(verbs.LinkUnspecified, verbs.LinkEthernet) }
func gidTypes() []string   { return named(verbs.GIDTypeIB, verbs.GIDTypeRoCEv2) }
func qpTypes() []string    { return named(verbs.RC, verbs.SRD) }
func qpStates() []string   { return named(verbs.Reset, verbs.Err) }

func validMTU(bytes int) bool {
	return slices.Contains([]int{256, 512, 1024, 2048, 4096}, bytes)
}

// parseGUID parses a GUID as GUID.String writes it.
func parseGUID(s string) (g verbs.GUID, ok bool) {
	const colons = 4 // is where the first one is, and how many digits there are to each
	if len(s) != 19 || s[colons] != ':' || s[2*colons+1] != ':' || s[3*colons+2] != ':' {
		return g, false
	}
	digits := []byte(strings.ReplaceAll(s, ":", ""))
	if len(digits) != 2*len(g) {
		return g, false
	}
	_, err := hex.Decode(g[:], digits)
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

// errnoNumber returns the errno that has a symbol.
func errnoNumber(symbol string) (syscall.Errno, bool) {
	if symbol == verbs.ErrnoName(verbs.NoErrno) {
		return verbs.NoErrno, true
	}
	if symbol == "ENOTSUP" { // on Linux another name of the same errno
		return syscall.EOPNOTSUPP, true
	}
	const highest = 200 // above every errno that has a symbol
	for n := syscall.Errno(1); n <= highest; n++ {
		if unix.ErrnoName(n) != "" && verbs.ErrnoName(n) == symbol {
			return n, true
		}
	}
	return 0, false
}

// commonErrnos are those that verbs fail with.
func commonErrnos() []string {
	return []string{
		"EACCES", "EAGAIN", "EBADF", "EBUSY", "EFAULT", "EINTR", "EINVAL", "EIO", "EMFILE", "ENODEV", "ENOENT",
		"ENOMEM", "ENOSPC", "ENOSYS", "EOPNOTSUPP", "EPERM", "EPROTONOSUPPORT", "ETIMEDOUT",
	}
}
