package simulated_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

func parse(t *testing.T, text string) *simulated.Profile {
	t.Helper()
	p, err := simulated.ParseProfile("profile", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDefault(t *testing.T) {
	p := must(simulated.LoadProfile("default.yaml"))(t)
	if !reflect.DeepEqual(p, simulated.Default()) {
		t.Error("the file is not the built-in profile")
	}
	if want := []string{"sim_ib0", "sim_rxe0", "sim_siw0"}; !slices.Equal(p.Names(), want) {
		t.Errorf("names %v, want %v", p.Names(), want)
	}
}

// everything is a profile with most keys.
const everything = `
devices:
  - name: troubled
    like: sim_ib0
    vanish: true
    fw_version: ""
    completion_vectors: 1
    limits: {max_cqe: 100}
    registration: {memlock_bytes: 65536}
    rounding: exact
    latency: {ibv_open_device: 3ms}
    completion_latency: {jitter: 0, slow_vectors: {}}
    faults:
      - {verb: ibv_create_cq, after: 2, times: 3, errno: ENOMEM}
      - {verb: ibv_create_cq, short: 5}
      - {verb: ibv_post_send, ignore: true}
      - {verb: ibv_create_qp, delay: 2s}
      - {verb: ibv_destroy_cq, hang: true}
      - {verb: ibv_query_device, crash: true}
      - {verb: ibv_create_ah, errno: no_errno}
    completion_faults: [{fault: delay_event, delay: 1s, path: flush}, {fault: fail_completion, status: retry_exc_err}]
    violate: [notify_any]
    async_events: [port_err]
    hardware_faults: [slow_link]
    resources:
      holders:
        - kernel: ib_core
          objects: {pd: 1, cq: 1}
          queue_pairs: [{type: gsi, state: rts, objects: 1}]
        - {dead: true, objects: {qp: 2}, growth: {qp: 60}, growth_shape: churn}
        - {pid: 4712, comm: !!binary /zw=, cgroup: /a/b, rdma_max: {hca_object: 2000}, memlock: {pinned: 1}}
      leak: {objects: {ctx: 1, qp: 1}, times: 3}
      pids_invisible: true
      incomplete: {srq: not_supported, cm_id: hang}
`

// TestLike verifies that keys replace those of the device that another is like, and that
// those left out are taken from it.
func TestLike(t *testing.T) {
	got := parse(t, everything).Devices[0]
	want := simulated.Default().Devices[2]
	want.Name, want.Firmware, want.CompletionVectors, want.Vanish, want.Rounding = "troubled", "", 1, true, "exact"
	want.Limits.MaxCQE, want.Registration.Memlock = 100, 65536
	want.Latency = map[verbs.Verb]time.Duration{verbs.OpenDevice: 3 * time.Millisecond}
	want.CompletionLatency.Jitter, want.CompletionLatency.SlowVectors = 0, map[int]time.Duration{}
	want.Violate, want.AsyncEvents, want.HardwareFaults = []string{"notify_any"}, []string{"port_err"}, []string{"slow_link"}
	if n := len(got.Faults) + len(got.CompletionFaults) + len(got.Resources.Holders); n != 7+2+3 || got.Resources.Holders[2].Comm != "\xff<" {
		t.Errorf("faults %+v, %+v, resources %+v", got.Faults, got.CompletionFaults, got.Resources)
	}
	want.Faults, want.CompletionFaults, want.Resources = got.Faults, got.CompletionFaults, got.Resources
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	two := parse(t, "devices:\n  - &first {name: one, like: sim_rxe0, completion_vectors: 7}\n  - {<<: *first, name: two}\n")
	if n := two.Devices[1].CompletionVectors; n != 7 {
		t.Errorf("%d completion vectors, want those of the anchor, 7", n)
	}
}

// TestJSON verifies that children get the profile that was read.
func TestJSON(t *testing.T) {
	p := parse(t, everything)
	text := must(json.Marshal(p))(t)
	var again simulated.Profile
	if err := json.Unmarshal(text, &again); err != nil || again.Validate() != nil {
		t.Errorf("%v, %v in\n%s", err, again.Validate(), text)
	}
	if got, want := must(yaml.Marshal(&again))(t), must(yaml.Marshal(p))(t); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestParseErrors(t *testing.T) {
	device := func(keys string) string { return "devices:\n  - name: a\n    like: sim_rxe0\n    " + keys + "\n" }
	fault := func(keys string) string { return device("faults: [{" + keys + "}]") }
	completion := func(keys string) string { return device("completion_faults: [{" + keys + "}]") }
	holder := func(keys string) string { return device("resources: {holders: [{" + keys + "}]}") }
	for text, want := range map[string]string{
		"":                                   "profile: devices are missing",
		"{}":                                 "profile: devices are missing",
		"devices: []\n---\n{}":               "more than one document",
		"devices: [":                         "profile: line 1: ",
		"devices: []\ndevcies: []":           `profile: line 2: unknown key "devcies"`,
		device("fauls: []"):                  `profile: line 4: unknown key "fauls"`,
		device("ports: 1"):                   "profile: line 4: cannot unmarshal",
		device("rounding: {qp: 1}"):          "profile: line 4: cannot unmarshal",
		device("completion_vectors: 1.5"):    "profile: line 4: `1.5` is not a whole number",
		device("completion_vectors: 0"):      "devices[0].completion_vectors: 0 is out of range; the lowest is 1",
		"devices: [{name: a, like: sim_rx}]": `profile: devices[0].like: unknown device "sim_rx"; valid are sim_ib0, sim_rxe0, sim_siw0`,
		"devices: [{name: a, like: sim_ib0}, {name: a, like: sim_ib0}]": "devices[1].name: the name \"a\" is taken already",
		"devices: [{name: /, like: sim_ib0}]":                           "is not valid; write it like sim_rxe0",
		device("driver: MLX"):                                           "is not valid; write it like bnxt_re",
		device("kernel: x"):                                             "is not valid; write it like 6.1",
		device("ports: [{number: 1, state: active, link_layer: Ethernet, active_mtu: 1}]"): `ports[0].active_mtu: unknown value "1"; valid are 256`,
		device("transport: RoCE"): `devices[0].transport: unknown value "RoCE"; valid are InfiniBand, iWARP`,
		device("node_guid: 1"):    `"1" is not valid; write it like 5254`,
		device("ports: []"):       "describe at least one port",
		device("ports: [{number: 2, state: actve, active_mtu: 1}]"):                        `devices[0].ports[0].state: unknown value "actve"; valid are nop, down`,
		device("ports: [{number: 2, state: active, link_layer: Ethernet, active_mtu: 1}]"): "ports[0].number: it is 2; number the ports from 1 without gaps",
		device("qp_types: [XYZ]"):                              `devices[0].qp_types[0]: unknown value "XYZ"; valid are RC`,
		device("limits: {max_qp: 0}"):                          "devices[0].limits.max_qp: 0 is out of range",
		device("default_latency: -1s"):                         "devices[0].default_latency: -1s is out of range",
		device("default_latency: 1"):                           "profile: line 4: cannot unmarshal",
		device("latency: {ibv_creat_cq: 1s}"):                  `latency.ibv_creat_cq: unknown value "ibv_creat_cq"; valid are ibv_`,
		device("completion_latency: {jitter: .nan}"):           "jitter: NaN is out of range",
		device("completion_latency: {slow_vectors: {1: -1s}}"): "slow_vectors.1: -1s is out of range",
		device("rounding: rx"):                                 `unknown value "rx"; valid are exact, rxe, ib`,
		device("violate: [notify_none]"):                       `violate[0]: unknown value "notify_none"`,
		device("async_events: [x]"):                            "async_events[0]: unknown value",
		device("hardware_faults: [x]"):                         "hardware_faults[0]: unknown value",
		fault("verb: ibv_alloc_pd"):                            "devices[0].faults[0]: it has 0 of them; give exactly one of errno, short",
		fault("verb: ibv_alloc_pd, errno: EIO, hang: true"):    "it has 2 of them",
		fault("verb: ibv_alloc_pd, errno: EOI"):                `faults[0].errno: unknown value "EOI"`,
		fault("verb: ibv_alloc_pd, short: 1"):                  "ibv_alloc_pd returns no size; these do: [ibv_create_cq",
		fault("verb: ibv_alloc_pd, ignore: true"):              "ibv_alloc_pd returns something",
		fault("hang: true"):                                    `faults[0].verb: unknown value ""`,
		completion("fault: drop"):                              `unknown value "drop"`,
		completion("fault: delay_event"):                       "delay_event takes a delay, and nothing else does",
		completion("fault: drop_event, delay: 1s"):             "delay_event takes a delay, and nothing else does",
		completion("fault: fail_completion"):                   "fail_completion takes a status, and nothing else does",
		completion("fault: spurious_event, path: flush"):       "an arming is on no path",
		holder("objects: {qp: 1}"):                             "holders[0]: it has 0 of them; give exactly one of pid, kernel and dead",
		holder("pid: 1, dead: true"):                           "it has 2 of them",
		holder("pid: 1, objects: {qps: 1}"):                    `objects.qps: unknown value "qps"; valid are pd, cq, qp`,
		holder("pid: 1, objects: {qp: 16777217}"):              "objects.qp: 16777217 is out of range",
		holder("pid: 1, ends: soon"):                           `parsing time "soon"`,
		holder("pid: 1, comm: 0123456789abcdef"):               "has more than 15 bytes",
		holder("pid: 1, cgroup: a"):                            `"a" is not valid; write it like /system.slice`,
		holder("pid: 1, rdma_max: {hca_object: 1}"):            "only a cgroup below the root has limits",
		holder("pid: 1, memlock: {limit: -1}"):                 "memlock.limit: -1 is out of range",
		holder("pid: 1, growth_shape: steps"):                  "growth_shape: unknown value",
		device("resources: {incomplete: {qp: fail}}"):          `incomplete.qp: unknown value "fail"`,
		device("resources: {incomplete: {qp: }}"):              `incomplete.qp: unknown value ""`,
		device("resources: {leak: {objects: {qp: 1025}}}"):     "leak.objects.qp: 1025 is out of range",
	} {
		p, err := simulated.ParseProfile("profile", []byte(text))
		if p != nil || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error\n%v\nwant\n%s", text, err, want)
		}
	}
}

// TestDocs verifies that the profiles of the documentation are valid and that it says how
// each contract is broken.
func TestDocs(t *testing.T) {
	text := must(os.ReadFile(filepath.Join("..", "..", "docs", "reference", "simulator.md")))(t)
	for _, name := range simulated.Contracts() {
		if !strings.Contains(string(text), "\n| `"+name+"` | ") {
			t.Errorf("how %s is broken is missing", name)
		}
	}
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	for i, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if _, err := simulated.ParseProfile("profile", []byte(block)); err != nil {
			t.Errorf("block %d: %v", i, err)
		}
	}
	if len(blocks) < 3 {
		t.Errorf("%d profiles", len(blocks))
	}
}

// TestRounding verifies what each device makes of 20 work requests and inline data of 20.
func TestRounding(t *testing.T) {
	for name, want := range map[string][]int{
		"sim_rxe0": {31, 20, 31, 20, 31, 20}, "sim_siw0": {20, 20, 20, 20, 20, 20}, "sim_ib0": {31, 31, 31, 32, 32, 32},
	} {
		d := open(t, like(t, name, nil))
		cq := must(d.CreateCQ(verbs.CQInitAttr{Entries: 20}))(t)
		pd := must(d.AllocPD())(t)
		srq := must(pd.CreateSRQ(verbs.SRQAttr{MaxWR: 20, MaxSGE: 1}))(t)
		qp := must(pd.CreateQP(verbs.QPInitAttr{
			SendCQ: cq, RecvCQ: cq, Type: verbs.RC, Cap: verbs.QPCap{MaxSendWR: 20, MaxRecvWR: 20, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 20},
		}))(t)
		queried := must(qp.Query())(t).Cap
		got := []int{
			cq.Entries(), int(srq.Created().MaxWR), int(must(srq.Query())(t).MaxWR),
			int(qp.Created().MaxSendWR), int(queried.MaxSendWR), int(queried.MaxInlineData),
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func FuzzParseProfile(f *testing.F) {
	f.Add([]byte("devices: []"))
	f.Add([]byte(everything))
	f.Add([]byte("devices: &a [{name: a, like: sim_ib0, <<: {vendor_id: 1}}]\n---\n*a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := simulated.ParseProfile("profile", data)
		if err != nil {
			return
		}
		text := must(json.Marshal(p))(t)
		var again simulated.Profile
		if err := json.Unmarshal(text, &again); err != nil || again.Validate() != nil {
			t.Fatalf("%v, %v in\n%s", err, again.Validate(), text)
		}
	})
}
