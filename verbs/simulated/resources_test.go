package simulated_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/verbs/simulated"
)

// troubled is a profile with every key of resources.
const troubled = `
devices:
  - name: troubled
    like: sim_ib0
    resources:
      holders:
        - kernel: ib_core
          objects: {pd: 1, cq: 1}
          queue_pairs: [{type: gsi, state: rts, objects: 1}]
        - {dead: true, objects: {qp: 2}, growth: {qp: 60}}
        - pid: 4711
          comm: "<b>\n\"\x1b"
          cgroup: /a/b
          objects: {ctx: 1, pd: 2, cq: 3, qp: 4, mr: 5, srq: 6, cm_id: 7}
          growth: {mr: 600}
          growth_shape: churn
          queue_pairs: [{type: rc, state: err, objects: 8}, {type: driver, state: sqe, objects: 9}]
          cq_entries: 131072
          mr_bytes: 1099511627776
          memlock: {pinned: 1, locked: 2, limit: 3}
          rdma_max: {hca_handle: 0, hca_object: 2000}
        - {pid: 4712, comm: !!binary /zw=, cgroup: /a/b, rdma_max: {hca_object: 2000}}
      leak: {objects: {ctx: 1, qp: 1}, times: 3}
      pids_invisible: true
      incomplete: {srq: not_supported, mr: interrupted, qp: timeout, cq: failed, cm_id: hang}
`

func TestResources(t *testing.T) {
	p := parse(t, troubled)
	want := simulated.Resources{
		Holders: []simulated.Holder{
			{
				Kernel: "ib_core", Objects: map[string]int{"pd": 1, "cq": 1},
				QueuePairs: []simulated.QueuePairs{{Type: "gsi", State: "rts", Objects: 1}},
			},
			{Dead: true, Objects: map[string]int{"qp": 2}, Growth: map[string]int{"qp": 60}},
			{
				PID: 4711, Comm: "<b>\n\"\x1b", Cgroup: "/a/b",
				Objects: map[string]int{"ctx": 1, "pd": 2, "cq": 3, "qp": 4, "mr": 5, "srq": 6, "cm_id": 7},
				Growth:  map[string]int{"mr": 600}, GrowthShape: "churn",
				QueuePairs: []simulated.QueuePairs{{Type: "rc", State: "err", Objects: 8}, {Type: "driver", State: "sqe", Objects: 9}},
				CQEntries:  131072, MRBytes: 1 << 40, Memlock: simulated.Memlock{Pinned: 1, Locked: 2, Limit: 3},
				RDMAMax: map[string]int{"hca_handle": 0, "hca_object": 2000},
			},
			{PID: 4712, Comm: "\xff<", Cgroup: "/a/b", RDMAMax: map[string]int{"hca_object": 2000}},
		},
		Leak:          simulated.Leak{Objects: map[string]int{"ctx": 1, "qp": 1}, Times: 3},
		PIDsInvisible: true,
		Incomplete:    map[string]string{"srq": "not_supported", "mr": "interrupted", "qp": "timeout", "cq": "failed", "cm_id": "hang"},
	}
	if got := p.Devices[0].Resources; !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	text, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if again := parse(t, string(text)); !reflect.DeepEqual(p, again) {
		t.Errorf("after marshalling and parsing:\n%+v\nwant\n%+v", again, p)
	}
}

// TestResourcesLike makes sure that a device takes each key that it leaves out, and
// no part of one that it has.
func TestResourcesLike(t *testing.T) {
	builtin := simulated.Default().Devices[2].Resources
	p := parse(t, `devices:
  - {name: whole, like: sim_ib0}
  - {name: leaking, like: sim_ib0, resources: {leak: {objects: {qp: 1}}}}
  - {name: other, like: sim_ib0, resources: {holders: [{pid: 1}]}}
  - {name: empty, like: sim_ib0, resources: {holders: []}}
`)
	for i, want := range []simulated.Resources{
		builtin,
		{Holders: builtin.Holders, Leak: simulated.Leak{Objects: map[string]int{"qp": 1}}},
		{Holders: []simulated.Holder{{PID: 1}}},
		{Holders: []simulated.Holder{}},
	} {
		if got := p.Devices[i].Resources; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%+v\nwant\n%+v", p.Devices[i].Name, got, want)
		}
	}
}

// TestResourcesAreCopied makes sure that devices that are scaled share nothing.
func TestResourcesAreCopied(t *testing.T) {
	p := parse(t, troubled)
	scaled := p.Scale(2)
	r := &scaled.Devices[1].Resources
	for i := range r.Holders {
		h := &r.Holders[i]
		h.Comm = "changed"
		for _, numbers := range []map[string]int{h.Objects, h.Growth, h.RDMAMax} {
			clear(numbers)
		}
		clear(h.QueuePairs)
	}
	clear(r.Leak.Objects)
	clear(r.Incomplete)
	if again := parse(t, troubled); !reflect.DeepEqual(p, again) || !reflect.DeepEqual(scaled.Devices[0], again.Devices[0]) {
		t.Error("devices share memory")
	}
}

// TestDocs makes sure that the profiles of the documentation are valid, that each key of
// resources is in one of them, and that it says how each contract is broken.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "simulator.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range simulated.Contracts() {
		if !strings.Contains(string(text), "\n| `"+name+"` | ") {
			t.Errorf("how %s is broken is not there", name)
		}
	}
	all := ""
	for i, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.HasPrefix(block, "devices:") {
			continue
		}
		all += block
		if _, err := simulated.ParseProfile([]byte(block)); err != nil {
			t.Errorf("block %d: %v", i, err)
		}
	}
	var look func(reflect.Type)
	look = func(typ reflect.Type) {
		for i := range typ.NumField() {
			field := typ.Field(i)
			key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			if !regexp.MustCompile(`\b` + key + `:`).MatchString(all) {
				t.Errorf("no profile shows the key %q", key)
			}
			of := field.Type
			for of.Kind() == reflect.Slice {
				of = of.Elem()
			}
			if of.Kind() == reflect.Struct {
				look(of)
			}
		}
	}
	look(reflect.TypeFor[simulated.Resources]())
	for _, typ := range simulated.ResourceTypes() {
		if !regexp.MustCompile(`\b` + typ + `: [0-9]`).MatchString(all) {
			t.Errorf("no profile shows the type %q", typ)
		}
	}
}

func TestResourceErrors(t *testing.T) {
	resources := func(text string) string {
		return "devices:\n  - name: a\n    like: sim_rxe0\n    resources:\n      " + text + "\n"
	}
	holder := func(text string) string { return resources("holders:\n        - " + text) }
	for name, test := range map[string]struct{ profile, want string }{
		"unknown key":             {resources("holder: []"), `profile:5: unknown key "holder"; did you mean holders?`},
		"unknown key of a holder": {holder("{pid: 1, object: {}}"), `profile:6: unknown key "object"; did you mean objects?`},
		"unknown key of pairs":    {holder("{pid: 1, queue_pairs: [{typ: rc}]}"), `unknown key "typ"; did you mean type?`},
		"unknown key of memlock":  {holder("{pid: 1, memlock: {max: 3}}"), `unknown key "max"; valid are pinned, locked, limit`},
		"unknown key of a leak":   {resources("leak: {qp: 1}"), `unknown key "qp"; valid are objects, times`},
		"holders that are none":   {resources("holders: {pid: 1}"), "a mapping is not a list"},
		"nobody":                  {holder("{objects: {qp: 1}}"), "profile:6: devices[0].resources.holders[0]: the holder is nobody; give exactly one of pid, kernel and dead"},
		"two":                     {holder("{pid: 1, dead: true}"), "the holder is several: pid, dead; give exactly one of pid, kernel and dead"},
		"pid":                     {holder("{pid: -1}"), "holders[0].pid: -1 is out of range; write a number from 1 to 4194304"},
		"pid in words":            {holder("{pid: init}"), `"init" is not a whole number`},
		"pid twice":               {holder("pid: 3\n        - pid: 3"), "profile:7: devices[0].resources.holders[1].pid: the process 3 is that of holders[0] already; write all that a process holds into one place"},
		"kernel":                  {holder("{kernel: " + strings.Repeat("m", 56) + "}"), "is no name of a part of the kernel; write it like ib_core"},
		"contexts of the kernel":  {holder("{kernel: ib_core, objects: {ctx: 1}}"), "holders[0].kernel: the kernel itself has no contexts; leave out ctx"},
		"growing contexts of it":  {holder("{kernel: ib_core, growth: {ctx: 1}}"), "the kernel itself has no contexts"},
		"comm":                    {holder("{pid: 1, comm: 0123456789abcdef}"), `holders[0].comm: "0123456789abcdef" is no name of a command; write up to 15 bytes, none of them 0`},
		"comm with a zero":        {holder(`{pid: 1, comm: "a\0b"}`), `"a\x00b" is no name of a command`},
		"comm of the dead":        {holder("{dead: true, comm: ghost}"), "holders[0].comm: only a process has comm; leave it out, or give the holder a pid"},
		"cgroup of the kernel":    {holder("{kernel: ib_core, cgroup: /a}"), "holders[0].cgroup: only a process has cgroup"},
		"memlock of the dead":     {holder("{dead: true, memlock: {limit: 3}}"), "holders[0].memlock: only a process has memlock"},
		"limits of the dead":      {holder("{dead: true, rdma_max: {hca_object: 3}}"), "holders[0].rdma_max: only a process has rdma_max"},
		"cgroup":                  {holder("{pid: 1, cgroup: a}"), `holders[0].cgroup: "a" is no path of a cgroup; write it like /system.slice/slurmd.service`},
		"cgroup of two lines":     {holder(`{pid: 1, cgroup: "/a\nb"}`), `"/a\nb" is no path of a cgroup`},
		"long cgroup":             {holder("{pid: 1, cgroup: /" + strings.Repeat("a", 4095) + "}"), "is no path of a cgroup"},
		"type":                    {holder("pid: 1\n          objects:\n            pd: 1\n            qps: 1"), `profile:9: devices[0].resources.holders[0].objects.qps: unknown type "qps"; did you mean`},
		"ends":                    {holder("{pid: 1, ends: soon}"), `holders[0].ends: "soon" is no time; write it like 2026-03-01T12:00:00Z`},
		"the dead end":            {holder("{dead: true, ends: 2026-03-01T12:00:00Z}"), "only a process has ends"},
		"negative":                {holder("{pid: 1, objects: {qp: -1}}"), "holders[0].objects.qp: -1 is out of range; write a number from 0 to 16777216"},
		"shape of growth":         {holder("{pid: 1, growth: {qp: 1}, growth_shape: steps}"), `holders[0].growth_shape: unknown shape of growth "steps"; did you mean step`},
		"shrinking":               {holder("{pid: 1, growth: {qp: -1}}"), "holders[0].growth.qp: -1 is out of range"},
		"too many":                {holder("{pid: 1, objects: {qp: 16777217}}"), "holders[0].objects.qp: 16777217 is out of range"},
		"too many together":       {holder("{pid: 1, objects: {qp: 9000000}}\n        - {pid: 2, growth: {qp: 9000000}}"), "resources.holders: there are up to 18000000 objects of the type qp, more than 16777216; lower them"},
		"too many pairs":          {holder("{pid: 1, objects: {qp: 1}, queue_pairs: [{type: rc, state: err, objects: 16777216}]}"), "there are up to 16777217 objects of the type qp"},
		"type of pairs":           {holder("{pid: 1, queue_pairs: [{type: RC, state: rts, objects: 1}]}"), `holders[0].queue_pairs[0].type: unknown type of queue pair "RC"; did you mean rc`},
		"state of pairs":          {holder("{pid: 1, queue_pairs: [{type: rc, state: error, objects: 1}]}"), `holders[0].queue_pairs[0].state: unknown state of queue pair "error"; did you mean err`},
		"no pairs":                {holder("{pid: 1, queue_pairs: [{type: rc, state: err}]}"), "holders[0].queue_pairs[0].objects: 0 is out of range; write a number from 1"},
		"entries":                 {holder("{pid: 1, cq_entries: -1}"), "holders[0].cq_entries: -1 is out of range"},
		"bytes":                   {holder("{pid: 1, mr_bytes: -1}"), "holders[0].mr_bytes: -1 is negative; write a number of bytes"},
		"pinned":                  {holder("{pid: 1, memlock: {pinned: -1}}"), "holders[0].memlock.pinned: -1 is negative"},
		"locked":                  {holder("{pid: 1, memlock: {locked: -1}}"), "holders[0].memlock.locked: -1 is negative"},
		"limit":                   {holder("{pid: 1, memlock: {limit: -1}}"), "holders[0].memlock.limit: -1 is negative"},
		"resource":                {holder("{pid: 1, cgroup: /a, rdma_max: {hca_objects: 1}}"), `holders[0].rdma_max.hca_objects: unknown resource "hca_objects"; did you mean hca_object?`},
		"less than none":          {holder("{pid: 1, cgroup: /a, rdma_max: {hca_object: -1}}"), "holders[0].rdma_max.hca_object: -1 is out of range"},
		"limits of no cgroup":     {holder("{pid: 1, rdma_max: {hca_object: 1}}"), "holders[0].rdma_max: only a cgroup has limits, and the root has none; write a cgroup below the root"},
		"limits of the root":      {holder("{pid: 1, cgroup: /, rdma_max: {hca_object: 1}}"), "and the root has none"},
		"two limits of a cgroup":  {holder("{pid: 1, cgroup: /a, rdma_max: {hca_object: 1}}\n        - {pid: 2, cgroup: /a, rdma_max: {hca_object: 2}}"), "profile:7: devices[0].resources.holders[1].rdma_max.hca_object: the cgroup is allowed 1 already; processes of one cgroup share its limits"},
		"leak of contexts":        {resources("leak: {objects: {ctx: 2}}"), "resources.leak.objects.ctx: a process that opens the device once has one context; write 1, or leave it out"},
		"leak of connections":     {resources("leak: {objects: {cm_id: 1}}"), "resources.leak.objects.cm_id: the kernel does not tell which context a connection id belongs to; leave it out"},
		"leak of too many":        {resources("leak: {objects: {qp: 1025}}"), "resources.leak.objects.qp: 1025 is out of range; write a number from 0 to 1024"},
		"leaks":                   {resources("leak: {times: -1}"), "resources.leak.times: -1 is out of range"},
		"unknown table":           {resources("incomplete: {qps: failed}"), `resources.incomplete.qps: unknown type "qps"`},
		"unknown way":             {resources("incomplete: {qp: fail}"), `resources.incomplete.qp: unknown way to go wrong "fail"; did you mean failed?`},
		"no way":                  {resources("incomplete: {qp: }"), "resources.incomplete.qp: way to go wrong is missing; valid are not_supported, failed, interrupted, timeout, hang"},
		"invisible":               {resources("pids_invisible: perhaps"), `"perhaps" is not true or false`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := simulated.ParseProfile([]byte(test.profile))
			var problem *simulated.ProfileError
			if !errors.As(err, &problem) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error\n%v\nwant\n%s", err, test.want)
			}
		})
	}
}
