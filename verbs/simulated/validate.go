package simulated

import (
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
	if p == nil {
		return errors.New("there is no profile of simulated devices")
	}
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
	return errors.New(strings.Join(v.problems, "; "))
}

type validator struct{ problems []string }

func (v *validator) demand(ok bool, at, format string, args ...any) {
	if !ok {
		v.problems = append(v.problems, at+": "+fmt.Sprintf(format, args...))
	}
}

// value checks a value, and all in it, by the tags of its field.
func (v *validator) value(at string, of reflect.Value, tag reflect.StructTag) {
	switch of.Kind() {
	case reflect.Struct:
		if of.Type() == reflect.TypeFor[time.Time]() {
			return
		}
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
			at := fmt.Sprintf("%s.%v", at, key)
			v.word(at, key.Interface(), tag.Get("keys"))
			v.value(at, element, tag)
		}
	case reflect.String:
		if of.String() != "" || !strings.HasSuffix(tag.Get("yaml"), ",omitempty") || tag.Get("keys") != "" {
			v.word(at, of, tag.Get("of"))
			v.text(at, of.String(), tag)
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
		v.word(at, of, tag.Get("of"))
	}
}

func (v *validator) text(at, text string, tag reflect.StructTag) {
	longest, err := strconv.Atoi(tag.Get("max"))
	v.demand(err != nil || len(text) <= longest, at, "%q has more than %s bytes", text, tag.Get("max"))
	if match := tag.Get("match"); match != "" {
		ok := regexp.MustCompile("^(?:" + match + ")$").MatchString(text)
		v.demand(ok, at, "%q is not valid; write it like %s", text, tag.Get("example"))
	}
}

func (v *validator) word(at string, word any, list string) {
	if list == "" {
		return
	}
	valid := words(list)
	v.demand(slices.Contains(valid, fmt.Sprint(word)), at, "unknown value %q; valid are %s", fmt.Sprint(word), strings.Join(valid, ", "))
}

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
	case "verb":
		return strings.Fields(strings.Trim(fmt.Sprint(verbs.Verbs()), "[]"))
	case "errno":
		return slices.Sorted(maps.Keys(errnos()))
	case "contract":
		return Contracts()
	}
	return strings.Fields(list)
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
	v.demand(d.Like == "", at+"like", "only ParseProfile resolves it")
	v.demand(len(d.Ports) > 0, at+"ports", "describe at least one port")
	for i, p := range d.Ports {
		at := fmt.Sprintf("%sports[%d].", at, i)
		v.demand(p.Number == i+1, at+"number", "it is %d; number the ports from 1 without gaps", p.Number)
		for j, g := range p.GIDs {
			addr, err := netip.ParseAddr(g.GID)
			v.demand(err == nil && addr.Zone() == "", fmt.Sprintf("%sgids[%d].gid", at, j),
				"%q is no GID; write it as an IPv6 address, like fe80::1 or ::ffff:192.0.2.1", g.GID)
		}
	}
	v.demand(len(d.QPTypes) > 0, at+"qp_types", "list some of %s", strings.Join(words("qp type"), ", "))
	v.demand(d.Limits.MaxMRSize > 0, at+"limits.max_mr_size", "it is missing")
	jitter := d.CompletionLatency.Jitter
	v.demand(jitter >= 0 && jitter <= 1, at+"completion_latency.jitter", "%v is out of range; write a number from 0 to 1", jitter)
	sizing := []verbs.Verb{verbs.CreateCQ, verbs.ResizeCQ, verbs.CreateSRQ, verbs.QuerySRQ, verbs.CreateQP, verbs.QueryQP}
	ignorable := []verbs.Verb{verbs.ReqNotifyCQ, verbs.ModifySRQ, verbs.PostSRQRecv, verbs.ModifyQP, verbs.PostSend, verbs.PostRecv}
	for i, f := range d.Faults {
		at := fmt.Sprintf("%sfaults[%d]", at, i)
		v.one(at, "errno, short, ignore, delay, hang and crash", f.Errno != "", f.Short != 0, f.Ignore, f.Delay != 0, f.Hang, f.Crash)
		v.demand(f.Short == 0 || slices.Contains(sizing, f.Verb), at+".short", "%s returns no size; these do: %v", f.Verb, sizing)
		v.demand(!f.Ignore || slices.Contains(ignorable, f.Verb), at+".ignore", "%s returns something; these do not: %v", f.Verb, ignorable)
	}
	for i, f := range d.CompletionFaults {
		at := fmt.Sprintf("%scompletion_faults[%d]", at, i)
		v.demand((f.Fault == "fail_completion") == (f.Status != ""), at+".status", "fail_completion takes a status, and nothing else does")
		v.demand((f.Fault == "delay_event") == (f.Delay != 0), at+".delay", "delay_event takes a delay, and nothing else does")
		v.demand(f.Fault != "spurious_event" || f.Path == "", at+".path", "leave it out; an arming is on no path")
	}
	for i, h := range d.Resources.Holders {
		at := fmt.Sprintf("%sresources.holders[%d]", at, i)
		v.one(at, "pid, kernel and dead", h.PID != 0, h.Kernel != "", h.Dead)
		v.demand(len(h.RDMAMax) == 0 || len(h.Cgroup) > 1, at+".rdma_max", "only a cgroup below the root has limits")
	}
}

func (v *validator) one(at, keys string, set ...bool) {
	n := len(slices.DeleteFunc(set, func(is bool) bool { return !is }))
	v.demand(n == 1, at, "it has %d of them; give exactly one of %s", n, keys)
}

type enum interface {
	~int
	String() string
}

func named[T enum](first, last T) (names []string) {
	for t := first; t <= last; t++ {
		names = append(names, t.String())
	}
	return names
}

func value[T enum](name string, first, last T) T {
	return first + T(max(0, slices.Index(named(first, last), name)))
}

// Contracts returns the names of the contracts that DeviceProfile.Violate can list.
// docs/reference/simulator.md says how a device breaks each. It breaks that one only: the
// others can still be seen to hold. A size that is misreported is not really that small, so
// that no work fails.
func Contracts() []string {
	return strings.Fields(`
		cq_at_least_requested cq_ex_at_least_requested cq_ex_batch_keeps_completions cq_comp_vector_accepted
		cq_comp_vector_rejected cq_destroy_busy cq_resize_at_least_requested cq_resize_too_small_refused
		cq_resize_keeps_completions channel_destroy_busy channel_steering srq_at_least_requested srq_reports_actual
		srq_limit_ignored srq_limit_event srq_limit_disarmed srq_destroy_busy qp_at_least_requested qp_reports_actual
		qp_srq_type_restricted qp_recv_caps_ignored_with_srq qp_sq_sig_all notify_any notify_one_shot
		notify_requires_arming notify_solicited_skips_unsolicited notify_solicited_delivers_solicited
		notify_solicited_delivers_errors notify_identifies_cq`)
}
