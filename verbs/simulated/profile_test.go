package simulated_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

func parse(t *testing.T, text string) *simulated.Profile {
	t.Helper()
	p, err := simulated.ParseProfile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDefault(t *testing.T) {
	p := simulated.Default()
	if want := []string{"sim_ib0", "sim_rxe0", "sim_siw0"}; !slices.Equal(p.Names(), want) {
		t.Errorf("names %v, want %v", p.Names(), want)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	p.Devices[0].Ports[0].GIDs[0].GID = "changed"
	p.Devices[0].Latency[verbs.CreateCQ] = 0
	p.Devices[2].CompletionLatency.SlowVectors[5] = 0
	if reflect.DeepEqual(p, simulated.Default()) {
		t.Error("two calls return the same memory")
	}
}

func TestDefaultFile(t *testing.T) {
	p, err := simulated.LoadProfile("default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p, simulated.Default()) {
		t.Error("the file is not what is built in")
	}
}

func TestRoundTrip(t *testing.T) {
	faulty := parse(t, `
devices:
  - name: bad
    like: sim_ib0
    vanish: true
    rounding:
      srq_wr: {created: {multiple_of: 3}, queried: exact, usable: [{at_least: 4}, {plus: -1}]}
      qp_recv_sge: {created: exact, queried: {always: 0}}
    faults:
      - {verb: ibv_create_cq, after: 2, times: 3, errno: ENOMEM}
      - {verb: ibv_create_srq, short: 5}
      - {verb: ibv_create_qp, delay: 2s}
      - {verb: ibv_destroy_cq, hang: true}
      - {verb: ibv_query_device, crash: true}
    completion_latency: {polled: 1us, notified: 3us, jitter: 0.25, slow_vectors: {3: 1ms, 77: 0s}}
    completion_faults:
      - {fault: drop_event, after: 3, times: 4, path: flush}
      - {fault: delay_event, delay: 2s}
      - {fault: fail_completion, status: rnr_retry_exc_err}
    violate: [cq_at_least_requested, notify_any]
`)
	for name, p := range map[string]*simulated.Profile{
		"default": simulated.Default(), "faulty": faulty, "scaled": simulated.Default().Scale(7), "none": parse(t, "devices: []"), "troubled": parse(t, troubled),
	} {
		text, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := simulated.ParseProfile(text)
		if err != nil {
			t.Errorf("%s: %v in\n%s", name, err, text)
		} else if !reflect.DeepEqual(p, again) {
			t.Errorf("%s: after marshalling and parsing:\n%+v\nwant\n%+v", name, again, p)
		}
		asJSON, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again = new(simulated.Profile)
		if err := json.Unmarshal(asJSON, again); err != nil {
			t.Errorf("%s: %v in\n%s", name, err, asJSON)
		} else if !reflect.DeepEqual(p, again) {
			t.Errorf("%s: after JSON:\n%+v\nwant\n%+v", name, again, p)
		}
	}
}

func TestLike(t *testing.T) {
	p := parse(t, `
devices:
  - name: mine
    like: sim_ib0
    fw_version: ""
    completion_vectors: 1
    limits: {max_cqe: 100}
    rounding: {cq_entries: exact}
    completion_latency: {jitter: 0, slow_vectors: {}}
`)
	want := simulated.Default().Devices[2]
	want.Name, want.Firmware, want.CompletionVectors = "mine", "", 1
	want.Limits.MaxCQE = 100
	exact := simulated.Rule{{Name: simulated.RuleExact}}
	want.Rounding.CQEntries = simulated.ReportedRule{Created: exact, Queried: exact}
	want.CompletionLatency.Jitter, want.CompletionLatency.SlowVectors = 0, map[int]time.Duration{}
	if !reflect.DeepEqual(p.Devices[0], want) {
		t.Errorf("got\n%+v\nwant\n%+v", p.Devices[0], want)
	}
}

func TestLikeThroughAnchors(t *testing.T) {
	p := parse(t, `
devices:
  - &first
    name: one
    like: sim_rxe0
    completion_vectors: 7
  - <<: *first
    name: two
`)
	if n := p.Devices[1].CompletionVectors; n != 7 {
		t.Errorf("%d completion vectors, want those of the anchor, 7", n)
	}
}

func TestScale(t *testing.T) {
	p := simulated.Default()
	for _, n := range []int{-1, 0, 1, 3, 64} {
		scaled := p.Scale(n)
		if err := scaled.Validate(); err != nil {
			t.Errorf("Scale(%d): %v", n, err)
		}
		if got := len(scaled.Devices); got != max(0, n) {
			t.Errorf("Scale(%d) has %d devices", n, got)
		}
	}
	if !reflect.DeepEqual(p.Scale(3), p) {
		t.Error("Scale(3) of three devices changes them")
	}
	scaled := p.Scale(7)
	if want := []string{"sim_ib0", "sim_ib0_1", "sim_rxe0", "sim_rxe0_1", "sim_rxe0_2", "sim_siw0", "sim_siw0_1"}; !slices.Equal(scaled.Names(), want) {
		t.Errorf("names %v, want %v", scaled.Names(), want)
	}
	guids := make(map[string]bool)
	for _, d := range p.Scale(64).Devices {
		guids[d.NodeGUID] = true
	}
	if len(guids) != 64 {
		t.Errorf("64 devices have %d GUIDs", len(guids))
	}
	// A name that a suffix would give may be taken already.
	clash := parse(t, "devices: [{name: a, like: sim_ib0}, {name: a_1, like: sim_ib0}]")
	if err := clash.Scale(12).Validate(); err != nil {
		t.Error(err)
	}
	if n := len((&simulated.Profile{}).Scale(3).Devices); n != 0 {
		t.Errorf("nothing scaled to 3 has %d devices", n)
	}
}

// TestParseErrors has a profile each, and what the error must say.
func TestParseErrors(t *testing.T) {
	device := func(lines string) string { return "devices:\n  - name: sim0\n    like: sim_rxe0\n" + lines }
	fault := func(text string) string { return device("    faults:\n      - " + text + "\n") }
	completion := func(text string) string { return device("    completion_faults:\n      - " + text + "\n") }
	latency := func(text string) string { return device("    completion_latency:\n      " + text + "\n") }
	for _, test := range []struct {
		name, profile, want string
	}{
		{"empty", "", "profile: the profile is empty; list devices, or write `devices: []` to simulate a host without any"},
		{"no devices", "devices:\n", "profile:1: devices: devices are missing; list devices"},
		{"empty mapping", "{}", "profile:1: devices: devices are missing; list devices, or write `devices: []`"},
		{"syntax", "devices: [", "profile:1: did not find expected node content"},
		{"two documents", "devices: []\n---\ndevices: []\n", "profile: the profile has more than one document; remove what follows the line ---"},
		{"not a mapping", "- 1\n", "profile:1: a list is not a mapping; write key: value lines"},
		{"unknown key", device("    max_inline: 3\n"), `profile:4: unknown key "max_inline"; did you mean max_inline_data?`},
		{"unknown key of a fault", fault("{verb: ibv_create_cq, errno: EIO, count: 3}"), `profile:5: unknown key "count"; valid are verb, when, after, times, errno, short, ignore, delay, hang, crash`},
		{"duplicate key", device("    vendor_id: 1\n    vendor_id: 2\n"), `profile:5: mapping key "vendor_id" already defined at line 4`},
		{"like nobody", "devices: [{name: a, like: sim_rxe}]", `profile:1: devices[0].like: the default profile has no device "sim_rxe"; did you mean sim_rxe0?`},
		{
			"duplicate name", "devices:\n  - {name: a, like: sim_ib0}\n  - {name: a, like: sim_ib0}\n",
			`profile:3: devices[1].name: the name "a" is that of devices[0] already; give each device a name of its own`,
		},
		{"no name", "devices:\n  - like: sim_ib0\n", `profile:2: devices[0].name: "" is no name for a device; write up to 63 letters`},
		{"bad name", "devices: [{name: a/b, like: sim_ib0}]", `profile:1: devices[0].name: "a/b" is no name for a device`},
		{"transport", device("    transport: Infiniband2\n"), `profile:4: devices[0].transport: unknown transport "Infiniband2"; did you mean InfiniBand?`},
		{"no transport", "devices: [{name: a}]", "profile:1: devices[0].transport: transport is missing; valid are InfiniBand, iWARP, usNIC, usNIC UDP, unspecified"},
		{"firmware", device("    fw_version: " + strings.Repeat("x", 64) + "\n"), "profile:4: devices[0].fw_version: the firmware version has 64 bytes, more than 63; shorten it"},
		{"vendor", device("    vendor_id: -1\n"), `profile:4: "-1" is not a number from 0 to 4294967295`},
		{"guid", device("    node_guid: 12\n"), `profile:4: devices[0].node_guid: "12" is no GUID; write it like 5254:00ff:fe12:3456`},
		{"vectors", device("    completion_vectors: 0\n"), "profile:4: devices[0].completion_vectors: 0 is out of range; write a number from 1 to 2147483647"},
		{"vectors in words", device("    completion_vectors: many\n"), `profile:4: "many" is not a whole number`},
		{"no ports", device("    ports: []\n"), "profile:4: devices[0].ports: the device has no port; describe at least one port"},
		{"no types", device("    qp_types: []\n"), "profile:4: devices[0].qp_types: the device has no QP types; list some of RC, UC, UD, RAW_PACKET, SRD"},
		{"unknown type", device("    qp_types: [RC, XRC]\n"), `profile:4: devices[0].qp_types[1]: unknown QP type "XRC"; did you mean RC?`},
		{"not a list", device("    qp_types: RC\n"), `profile:4: "RC" is not a list; put each element on a line of its own that starts with a dash`},
		{"flag", device("    vanish: maybe\n"), `profile:4: "maybe" is not true or false`},
		{"limit", device("    limits:\n      max_qp: 0\n"), "profile:5: devices[0].limits.max_qp: 0 is out of range; write a number from 1 to 2147483647"},
		{"negative limit", device("    limits: {max_ah: -1}\n"), "profile:4: devices[0].limits.max_ah: -1 is out of range"},
		{"no size", device("    limits: {max_mr_size: 0}\n"), "profile:4: devices[0].limits.max_mr_size: max_mr_size is missing; write a number of bytes"},
		{"inline", device("    max_inline_data: -1\n"), "profile:4: devices[0].max_inline_data: -1 is out of range"},
		{"rule", device("    rounding:\n      cq_entries: power_of_tow\n"), `profile:5: devices[0].rounding.cq_entries: unknown rounding rule "power_of_tow"; did you mean power_of_two?`},
		{"far from every rule", device("    rounding: {qp_wr: fibonacci}\n"), `unknown rounding rule "fibonacci"; valid are exact, power_of_two, power_of_two_minus_one, {multiple_of: N}, {plus: N}, {times: N}, {at_least: N}, {at_most: N}, {always: N}`},
		{"bad usable", device("    rounding: {srq_wr: {created: exact, usable: [exact, {plus: -9999999}]}}\n"), "devices[0].rounding.srq_wr: plus -9999999 is out of range; write {plus: N} with N from -1048576 to 1048576"},
		{"bad receive queue", device("    rounding: {qp_recv_sge: fibonacci}\n"), `devices[0].rounding.qp_recv_sge: unknown rounding rule "fibonacci"`},
		{"multiple of nothing", device("    rounding: {qp_wr: {multiple_of: 0}}\n"), "profile:4: devices[0].rounding.qp_wr: multiple_of 0 is out of range; write {multiple_of: N} with N from 1 to 1048576"},
		{"multiple in words", device("    rounding: {qp_wr: {multiple_of: few}}\n"), "profile:4: multiple_of takes a whole number"},
		{"rule of lists", device("    rounding: {cq_entries: [[exact]]}\n"), "profile:4: a rounding rule is a name or {multiple_of: N}"},
		{"queried of a CQ", device("    rounding: {cq_entries: {created: exact, queried: power_of_two}}\n"), "profile:4: devices[0].rounding.cq_entries: no verb queries a CQ; leave queried out"},
		{"created twice", device("    rounding: {srq_wr: {created: exact, asked: exact}}\n"), "profile:4: a rounding rule that is reported otherwise is {created: RULE, queried: RULE, usable: RULE}"},
		{"queried only", device("    rounding: {srq_wr: {queried: exact}}\n"), "profile:4: a rounding rule that is reported otherwise is {created: RULE, queried: RULE, usable: RULE}"},
		{"bad queried", device("    rounding: {srq_wr: {created: exact, queried: exactly}}\n"), `unknown rounding rule "exactly"; did you mean exact?`},
		{"latency of a verb", device("    latency:\n      ibv_creat_cq: 1s\n"), `profile:5: devices[0].latency.ibv_creat_cq: unknown verb "ibv_creat_cq"; did you mean ibv_create_cq?`},
		{"negative latency", device("    latency: {ibv_create_cq: -1s}\n"), "profile:4: devices[0].latency.ibv_create_cq: the duration -1s is negative; write how long it takes, like 250ms or 2s"},
		{"default latency", device("    default_latency: 3\n"), "profile:4: \"3\" is not a duration; write it with its unit, like 250ms or 2s"},
		{"port number", device("    ports: [{number: 2, state: active, link_layer: Ethernet, active_mtu: 1024}]\n"), "profile:4: devices[0].ports[0].number: the port has number 2; number the ports from 1 without gaps; this one is 1"},
		{"port state", device("    ports: [{number: 1, state: up, link_layer: Ethernet, active_mtu: 1024}]\n"), `devices[0].ports[0].state: unknown port state "up"; did you mean nop?`},
		{"link layer", device("    ports: [{number: 1, state: down, link_layer: ethernet, active_mtu: 1024}]\n"), `unknown link layer "ethernet"; did you mean Ethernet?`},
		{"mtu", device("    ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1500}]\n"), "devices[0].ports[0].active_mtu: 1500 is no MTU; write 256, 512, 1024, 2048 or 4096"},
		{"gid", device("    ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, gids: [{gid: fe80, type: IB}]}]\n"), `devices[0].ports[0].gids[0].gid: "fe80" is no GID; write it as an IPv6 address`},
		{"gid zone", device("    ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, gids: [{gid: 'fe80::1%eth0', type: IB}]}]\n"), `"fe80::1%eth0" is no GID`},
		{"gid type", device("    ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, gids: [{gid: 'fe80::1', type: RoCE v3}]}]\n"), `unknown GID type "RoCE v3"; did you mean RoCE v1 or RoCE v2?`},
		{"gid index", device("    ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, gids: [{gid: 'fe80::1', type: IB}, {gid: 'fe80::2', type: IB}]}]\n"), "the GID index 0 is taken already; give each GID an index of its own"},
		{"fault verb", fault("{verb: ibv_creat_cq, errno: ENOMEM}"), `profile:5: devices[0].faults[0].verb: unknown verb "ibv_creat_cq"; did you mean ibv_create_cq?`},
		{"no fault verb", fault("{errno: ENOMEM}"), "profile:5: devices[0].faults[0].verb: verb is missing; valid are ibv_get_device_list, ibv_open_device,"},
		{"far from every verb", fault("{verb: rdma_connect, errno: ENOMEM}"), `unknown verb "rdma_connect"; valid are ibv_get_device_list,`},
		{"fault errno", fault("{verb: ibv_create_cq, errno: ENOMEN}"), `profile:5: devices[0].faults[0].errno: unknown errno symbol "ENOMEN"; did you mean ENOMEM?`},
		{"errno number", fault("{verb: ibv_create_cq, errno: 12}"), `unknown errno symbol "12"; valid are EACCES, EAGAIN,`},
		{"no action", fault("{verb: ibv_create_cq}"), "profile:5: devices[0].faults[0]: the fault does nothing; give exactly one of errno, short, ignore, delay, hang and crash"},
		{"two actions", fault("{verb: ibv_create_cq, errno: EIO, hang: true}"), "profile:5: devices[0].faults[0]: the fault has 2 actions: errno, hang; give exactly one of errno, short, ignore, delay, hang and crash, and write a fault for each"},
		{"after", fault("{verb: ibv_create_cq, after: -1, hang: true}"), "profile:5: devices[0].faults[0].after: -1 is out of range"},
		{"times", fault("{verb: ibv_create_cq, times: -1, hang: true}"), "profile:5: devices[0].faults[0].times: -1 is out of range"},
		{"negative short", fault("{verb: ibv_create_cq, short: -1}"), "profile:5: devices[0].faults[0].short: -1 is out of range; write a number from 1 to 2147483647"},
		{"ignored", fault("{verb: ibv_create_cq, ignore: true}"), "profile:5: devices[0].faults[0].ignore: ibv_create_cq gives something, and cannot be ignored; only these can: ibv_req_notify_cq,"},
		{"type of a condition", fault("{verb: ibv_create_qp, when: {qp_types: [RC, XX]}, errno: EIO}"), `profile:5: devices[0].faults[0].when.qp_types[1]: unknown type of queue pair "XX"`},
		{"state of a condition", fault("{verb: ibv_post_send, when: {states: [ERROR]}, errno: EIO}"), `profile:5: devices[0].faults[0].when.states[0]: unknown state "ERROR"; did you mean ERR?`},
		{"to of a condition", fault("{verb: ibv_modify_qp, when: {to: [up]}, errno: EIO}"), `devices[0].faults[0].when.to[0]: unknown state "up"`},
		{"port of a condition", fault("{verb: ibv_query_port, when: {ports: [0]}, errno: EIO}"), "profile:5: devices[0].faults[0].when.ports[0]: 0 is out of range; write a number from 1 to 255"},
		{"GID of a condition", fault("{verb: ibv_create_ah, when: {gids: [256]}, errno: EIO}"), "devices[0].faults[0].when.gids[0]: 256 is out of range"},
		{"unknown key of a condition", fault("{verb: ibv_create_ah, when: {gid: 3}, errno: EIO}"), `profile:5: unknown key "gid"; did you mean gids?`},
		{"GRH of Ethernet", device("    ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, grh_required: true}]\n"), "devices[0].ports[0].grh_required: grh_required on a port of Ethernet; leave it out: Ethernet always needs it"},
		{"partition key", device("    ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, pkey_table: [0x10000]}]\n"), "is not a number from 0 to 65535"},
		{"short of nothing", fault("{verb: ibv_poll_cq, short: 1}"), "profile:5: devices[0].faults[0].short: ibv_poll_cq gives no size that could be short; only these can: ibv_create_cq, ibv_resize_cq, ibv_create_srq, ibv_query_srq, ibv_create_qp, ibv_query_qp"},
		{"negative delay", fault("{verb: ibv_create_cq, delay: -2s}"), "profile:5: devices[0].faults[0].delay: the duration -2s is negative"},
		{"delay without unit", fault("{verb: ibv_create_cq, delay: 2}"), "profile:5: \"2\" is not a duration; write it with its unit, like 250ms or 2s"},
		{"unknown key of a completion fault", completion("{fault: drop_event, verb: ibv_poll_cq}"), `profile:5: unknown key "verb"; valid are fault, path, after, times, status, delay`},
		{"completion fault", completion("{fault: drop_evnt}"), `profile:5: devices[0].completion_faults[0].fault: unknown fault "drop_evnt"; did you mean drop_event?`},
		{"no completion fault", completion("{times: 1}"), "profile:5: devices[0].completion_faults[0].fault: fault is missing; valid are drop_event, delay_event,"},
		{"after of a completion fault", completion("{fault: drop_event, after: -1}"), "profile:5: devices[0].completion_faults[0].after: -1 is out of range"},
		{"times of a completion fault", completion("{fault: drop_event, times: -1}"), "profile:5: devices[0].completion_faults[0].times: -1 is out of range"},
		{"path", completion("{fault: drop_event, path: flushed}"), `completion_faults[0].path: unknown path "flushed"; did you mean flush?`},
		{"path of an arming", completion("{fault: spurious_event, path: flush}"), "completion_faults[0].path: spurious_event acts when a CQ is armed, which is on no path; leave it out"},
		{"status", completion("{fault: fail_completion, status: wr_flush_er}"), `completion_faults[0].status: unknown status "wr_flush_er"; did you mean wr_flush_err?`},
		{"success", completion("{fault: fail_completion, status: success}"), `completion_faults[0].status: unknown status "success"; valid are loc_len_err,`},
		{"no status", completion("{fault: fail_completion}"), "completion_faults[0].status: status is missing; valid are loc_len_err, loc_qp_op_err,"},
		{"status of an event", completion("{fault: drop_event, status: general_err}"), "completion_faults[0].status: only fail_completion takes a status; leave it out"},
		{"no delay", completion("{fault: delay_event}"), "completion_faults[0].delay: delay is missing; write how long it takes, like 250ms or 2s"},
		{"negative delay of an event", completion("{fault: delay_event, delay: -1s}"), "completion_faults[0].delay: the duration -1s is negative"},
		{"delay of what is dropped", completion("{fault: drop_event, delay: 1s}"), "completion_faults[0].delay: only delay_event takes a delay; leave it out"},
		{"unknown key of latencies", latency("median: 3us"), `profile:5: unknown key "median"; valid are polled, notified, jitter, slow_vectors`},
		{"negative median", latency("polled: -3us"), "profile:5: devices[0].completion_latency.polled: the duration -3µs is negative"},
		{"negative median of events", latency("notified: -3us"), "profile:5: devices[0].completion_latency.notified: the duration -3µs is negative"},
		{"jitter", latency("jitter: 1.5"), "profile:5: devices[0].completion_latency.jitter: 1.5 is out of range; write a number from 0 to 1"},
		{"jitter that is none", latency("jitter: .nan"), "completion_latency.jitter: NaN is out of range"},
		{"jitter in words", latency("jitter: much"), `profile:5: "much" is not a number`},
		{"slow vector", latency("slow_vectors:\n        1: 3us\n        -1: 3us"), "profile:7: devices[0].completion_latency.slow_vectors.-1: there is no completion vector -1; completion vectors count from 0"},
		{"slow by nothing", latency("slow_vectors: {1: -3us}"), "completion_latency.slow_vectors.1: the duration -3µs is negative"},
		{"slow vector in words", latency("slow_vectors: {last: 3us}"), `profile:5: "last" is not a whole number`},
		{"contract", device("    violate:\n      - cq_destroy_busy\n      - notify_oneshot\n"), `profile:6: devices[0].violate[1]: unknown contract "notify_oneshot"; did you mean notify_one_shot?`},
		{"far from every contract", device("    violate: [everything]\n"), `profile:4: devices[0].violate[0]: unknown contract "everything"; valid are cq_at_least_requested, cq_ex_at_least_requested, cq_ex_batch_keeps_completions, cq_comp_vector_accepted,`},
		{"no contract", device("    violate: ['']\n"), `profile:4: devices[0].violate[0]: contract is missing; valid are cq_at_least_requested,`},
		{"contracts that are no list", device("    violate: notify_any\n"), `profile:4: "notify_any" is not a list`},
		{"delay in words", fault("{verb: ibv_create_cq, delay: long}"), `profile:5: "long" is not a duration; write it with its unit, like 250ms or 2s`},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := simulated.ParseProfile([]byte(test.profile))
			if err == nil {
				t.Fatalf("no error, want %s", test.want)
			}
			if p != nil {
				t.Error("a profile beside the error")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error\n%v\nwant\n%s", err, test.want)
			}
			var problem *simulated.ProfileError
			if !errors.As(err, &problem) {
				t.Errorf("the error is a %T, want a ProfileError", err)
			}
		})
	}
}

func TestParseErrorsTogether(t *testing.T) {
	_, err := simulated.ParseProfile([]byte("devices:\n  - name: a\n    like: sim_ib0\n    completion_vectors: -1\n    faults: [{verb: x, errno: y}]\n"))
	if err == nil {
		t.Fatal("no error")
	}
	for _, where := range []string{"profile:4: devices[0].completion_vectors", "profile:5: devices[0].faults[0].verb", "profile:5: devices[0].faults[0].errno"} {
		if !strings.Contains(err.Error(), where) {
			t.Errorf("error %q does not mention %s", err, where)
		}
	}
}

func TestLoadProfileErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := simulated.LoadProfile(filepath.Join(dir, "absent.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent file: %v", err)
	}
	file := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(file, []byte("devices:\n- name: x\n  colour: blue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := simulated.LoadProfile(file)
	if err == nil || !strings.HasPrefix(err.Error(), file+":3: unknown key \"colour\"") {
		t.Errorf("error %v does not begin with file and line", err)
	}
}

func TestInvalidProfile(t *testing.T) {
	bad := simulated.Default()
	bad.Devices[1].Faults = []simulated.Fault{{Verb: verbs.CreateCQ}}
	want := "devices[1].faults[0]: the fault does nothing; give exactly one of errno, short, ignore, delay, hang and crash"
	if err := bad.Validate(); err == nil || err.Error() != want {
		t.Errorf("Validate: %v, want %s", err, want)
	}
	unresolved := simulated.Default()
	unresolved.Devices[0].Like = "sim_ib0"
	for name, p := range map[string]*simulated.Profile{"none": nil, "bad": bad, "like": unresolved} {
		provider := simulated.New(p, nil)
		if _, err := provider.Open("sim_ib0"); err == nil {
			t.Errorf("%s: Open succeeded", name)
		}
	}
}

func FuzzParseProfile(f *testing.F) {
	text, err := os.ReadFile("default.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("devices: []"))
	f.Add([]byte("devices: [{name: a, like: sim_ib0, violate: [notify_any], completion_latency: {jitter: 1, slow_vectors: {1: 1s}}}]"))
	f.Add([]byte("devices: [{name: a, like: sim_ib0, completion_faults: [{fault: delay_event, delay: 1s, path: flush}]}]"))
	f.Add([]byte("devices: [{name: a, like: sim_rxe0, faults: [{verb: ibv_poll_cq, hang: true}]}]"))
	f.Add([]byte("devices: [{name: a, like: sim_rxe0, rounding: {srq_wr: {created: {multiple_of: 3}, queried: exact}}}]"))
	f.Add([]byte("devices: &a [{name: a, like: sim_ib0, <<: {vendor_id: 1}}]\n---\n*a"))
	f.Add([]byte(troubled))
	f.Add([]byte("devices: [{name: a, latency: {ibv_poll_cq: 1s}, ports: [{gids: [{gid: '::'}]}]}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := simulated.ParseProfile(data)
		if err != nil {
			if p != nil || err.Error() == "" {
				t.Fatalf("profile %v, error %q", p, err)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("parsed, yet not valid: %v", err)
		}
		text, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := simulated.ParseProfile(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !slices.Equal(p.Names(), again.Names()) {
			t.Fatalf("names %v, then %v", p.Names(), again.Names())
		}
		// What is valid must be usable.
		if _, err := simulated.New(p, nil).Open("no such device"); err == nil {
			t.Fatal("opened a device that does not exist")
		}
	})
}
