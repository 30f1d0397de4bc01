package probe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

var creators = []verbs.Verb{
	verbs.AllocPD, verbs.RegMR, verbs.CreateAH, verbs.CreateCompChannel, verbs.CreateCQ, verbs.CreateSRQ, verbs.CreateQP,
}

// creations counts what a run asked a device to create, whether or not it did.
func creations(r *state.Run) (qps, all int) {
	for _, c := range r.Calls {
		if c.Verb == string(verbs.CreateQP) {
			qps++
		}
		if slices.Contains(creators, verbs.Verb(c.Verb)) {
			all++
		}
	}
	return qps, all
}

// everyDevice returns the built-in devices and all kinds of adapters.
func everyDevice(t *testing.T) map[string]*simulated.Profile {
	t.Helper()
	profiles := make(map[string]*simulated.Profile)
	for _, name := range simulated.Default().Names() {
		profiles[name] = parse(t, "like: "+name)
	}
	profiles["two ports"] = parse(t, "like: sim_ib0, completion_vectors: 3, ports: ["+
		`{number: 1, state: active, link_layer: InfiniBand, lid: 1, active_mtu: 1024, gids: []}, `+
		`{number: 2, state: active, link_layer: InfiniBand, lid: 2, active_mtu: 1024, gids: []}]`)
	profiles["five addresses that lead nowhere"] = parse(t, addresses(1, 2, 3, 4, 5, 6)+", faults: [{verb: ibv_modify_qp, when: {gids: [1, 2, 3, 4, 5], to: [RTR]}, errno: EINVAL}]")
	for _, a := range adapters() {
		profiles[a.name] = a.load(t)
	}
	return profiles
}

// TestDepths verifies what a short run covers on each device, that a full run provokes no
// refusal again, and what both create at defaults: one full and 14 short runs in 15 minutes.
func TestDepths(t *testing.T) {
	const maxQPs, maxCreations, minutes = 12, 40, 15
	for name, p := range everyDevice(t) {
		t.Run(name, func(t *testing.T) {
			c := quick()
			first := still(t, p, probe.Options{Config: c, Short: true})
			if first.Depth != state.DepthFull || first.Facts == nil || first.Sizes != c.Sizes() {
				t.Fatalf("an unknown device: depth %s, sizes %q, facts %+v", first.Depth, first.Sizes, first.Facts)
			}
			full := still(t, p, probe.Options{Config: c, Facts: first.Facts})
			if full.Facts != nil || full.Depth != state.DepthFull {
				t.Errorf("a known device: depth %s, facts %+v", full.Depth, full.Facts)
			}
			for _, call := range full.Calls {
				if call.Verb == string(verbs.CreateQP) && call.Expected {
					t.Errorf("a full run repeats a refusal: %+v", call)
				}
			}
			short := still(t, p, probe.Options{Config: c, Facts: first.Facts, Short: true})
			if short.Depth != state.DepthShort || short.Facts != nil || short.Error != "" {
				t.Fatalf("depth %s, facts %+v, error %q", short.Depth, short.Facts, short.Error)
			}
			at := still(t, p, probe.Options{Config: c, Quick: true})
			if at.Depth != state.DepthShort || at.Error != "" || len(at.Probes) != len(short.Probes) {
				t.Fatalf("quick: depth %s, error %q, probes %+v", at.Depth, at.Error, at.Probes)
			}
			for i, p := range at.Probes {
				if want := short.Probes[i]; p.Status != want.Status || len(p.QPs) != len(want.QPs) || len(p.Inline)+len(p.InlineSends) > 0 {
					t.Errorf("quick: %s %s, in a short run %s: %+v", p.Name, p.Status, want.Status, p)
				}
			}
			measured := make(map[string]bool)
			for i, p := range short.Probes {
				if want := full.Probes[i]; p.Name != want.Name || p.Status != want.Status {
					t.Errorf("%s %s, in the full run %s %s: %+v", p.Name, p.Status, want.Name, want.Status, p.Failures)
				}
				if len(p.CQs) > 1 || len(p.SRQs) > 1 || len(p.QPs) > 1 {
					t.Errorf("%s covers more than one size: %+v", p.Name, p)
				}
				for _, l := range p.Latencies {
					measured[fmt.Sprint(l.Path, l.Port, l.Vector)] = true
				}
				if len(p.InlineSends) > 0 {
					t.Errorf("inline data was sent: %+v", p.InlineSends)
				}
			}
			if len(measured) > 1 {
				t.Errorf("measured %v", measured)
			}
			fullQPs, fullAll := creations(&full)
			shortQPs, shortAll := creations(&short)
			if n := fullQPs + (minutes-1)*shortQPs; n > minutes*maxQPs {
				t.Errorf("%d queue pairs in %d minutes (%d in a full run, %d in a short one)", n, minutes, fullQPs, shortQPs)
			}
			if n := fullAll + (minutes-1)*shortAll; n > minutes*maxCreations {
				t.Errorf("%d creations in %d minutes (%d in a full run, %d in a short one)", n, minutes, fullAll, shortAll)
			}
		})
	}
}

// addresses returns the keys of a device with a port that has GIDs of these indices, the best
// first.
func addresses(indices ...int) string {
	var gids []string
	for _, i := range indices {
		gids = append(gids, fmt.Sprintf(`{index: %d, gid: "::ffff:192.0.2.%d", type: RoCE v2}`, i, i))
	}
	return "like: sim_rxe0, completion_vectors: 1, ports: [{number: 1, state: active, link_layer: Ethernet, active_mtu: 1024, gids: [" +
		strings.Join(gids, ", ") + "]}]"
}

// TestKnownMethods verifies that the method that was found is used again, with the reason why
// no better one is, until the candidates change or it no longer works.
func TestKnownMethods(t *testing.T) {
	probed := func(keys string, facts *state.Facts) (r state.Run, m state.Method, tried int) {
		t.Helper()
		r = still(t, parse(t, keys), probe.Options{Config: quick(), Facts: facts, Short: true})
		for _, c := range r.Calls {
			if c.Verb == string(verbs.ModifyQP) && c.Errno == "EINVAL" {
				tried++
			}
		}
		return r, methodOf(r.Probes[5], state.PathLoopback), tried
	}
	refusing := func(indices string) string {
		return ", faults: [{verb: ibv_modify_qp, when: {gids: [" + indices + "], to: [RTR]}, errno: EINVAL}]"
	}
	first, found, tried := probed(addresses(1, 2, 3)+refusing("1, 2"), nil)
	if !strings.HasPrefix(found.By, "GID 3") || !strings.Contains(found.InsteadOf, "; GID 2") || tried == 0 {
		t.Fatalf("found %+v, after %d refusals", found, tried)
	}
	for _, tc := range []struct {
		name, device string
		by           string
		same         bool // as was found
		tried, news  bool
	}{
		{"the same", addresses(1, 2, 3) + refusing("1, 2"), "GID 3", true, false, false},
		{"a better one works now", addresses(1, 2, 3), "GID 3", true, false, false},
		{"another address", addresses(1, 2, 3, 4) + refusing("1"), "GID 2", false, true, true},
		{"it no longer works", addresses(1, 2, 3) + refusing("3"), "GID 1", false, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, m, tried := probed(tc.device, first.Facts)
			if !strings.HasPrefix(m.By, tc.by) || (m == found) != tc.same {
				t.Errorf("used %+v", m)
			}
			if (tried > 0) != tc.tried || (r.Facts != nil) != tc.news {
				t.Errorf("%d refusals, facts %+v", tried, r.Facts)
			}
			if r.Facts != nil && len(r.Facts.Methods) == 0 {
				t.Errorf("methods %+v", r.Facts.Methods)
			}
		})
	}
}

// TestFacts verifies that facts are used unless the device has changed, and that a search that
// failed leaves no fact.
func TestFacts(t *testing.T) {
	device := func(keys string) *simulated.Profile { return parse(t, "like: sim_rxe0"+keys) }
	first := still(t, device(""), probe.Options{Config: quick(), Short: true})
	expected := func(r *state.Run) (n int) {
		for _, c := range r.Calls {
			if c.Verb == string(verbs.CreateQP) && c.Expected {
				n++
			}
		}
		return n
	}
	if n := expected(&first); n == 0 {
		t.Error("no refusal was provoked")
	}
	for _, tc := range []struct {
		name, device string
		facts        *state.Facts
		full         bool
	}{
		{"the same device", "", first.Facts, false},
		{"other firmware", ", fw_version: other", first.Facts, true},
		{"another kernel", ", kernel: '9.9'", first.Facts, true},
		{"nothing known", "", nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := still(t, device(tc.device), probe.Options{Config: quick(), Facts: tc.facts, Short: true})
			if n := expected(&r); (n > 0) != tc.full || (r.Facts != nil) != tc.full || (r.Depth == state.DepthFull) != tc.full {
				t.Errorf("depth %s, %d refusals, facts %+v", r.Depth, n, r.Facts)
			}
			if r.Facts != nil && len(r.Facts.Absent)+len(r.Facts.Inline) != len(verbs.QPTypes()) {
				t.Errorf("facts %+v", r.Facts)
			}
		})
	}

	// The search of the first type fails, and nothing else: the next run searches again.
	broken := still(t, device(", faults: [{verb: ibv_create_qp, after: 4, times: 1, errno: EIO}]"), probe.Options{Config: quick(), Short: true})
	if broken.Facts == nil || slices.ContainsFunc(broken.Facts.Inline, func(m state.InlineMax) bool { return m.Type == "rc" }) || len(broken.Facts.Inline) != 2 {
		t.Fatalf("after a search that failed: %+v", broken.Facts)
	}
	next := still(t, device(""), probe.Options{Config: quick(), Facts: broken.Facts, Short: true})
	if next.Depth != state.DepthShort {
		t.Errorf("the next run: %s", next.Depth)
	}

	// A type that there was and that is refused now is a failure, not a lack.
	gone := still(t, device(", faults: [{verb: ibv_create_qp, when: {qp_types: [RC]}, errno: EOPNOTSUPP}]"), probe.Options{Config: quick(), Facts: first.Facts, Short: true})
	if qp := gone.Probes[3]; qp.Status != state.StatusFailed || !strings.Contains(qp.Failures[0].Message, "EOPNOTSUPP") || qp.Failures[0].Subject.String() != "rc small" {
		t.Errorf("a type that was there: %s: %+v", qp.Status, qp.Failures)
	}
}

var inUse = &state.Reduced{Reason: state.ReducedBusy, Detail: "somebody"}

// TestReduced verifies that a reduced run creates one CQ and one QP and nothing else, on any
// device, and reports failures like any other run.
func TestReduced(t *testing.T) {
	fault := func(verb, when, errno string) string {
		return "like: sim_ib0, faults: [{verb: " + verb + ", when: {" + when + "}, errno: " + errno + "}]"
	}
	rec := golden.Record(t)
	for _, tc := range []struct {
		name, device string
		known        bool // by an earlier run
	}{
		{"every type", "like: sim_ib0", false},
		{"no RC", fault("ibv_create_qp", "qp_types: [RC]", "EOPNOTSUPP"), false},
		{"RC refused ambiguously", fault("ibv_create_qp", "qp_types: [RC]", "EINVAL"), false},
		{"UD alone", fault("ibv_create_qp", "qp_types: [RC, UC]", "EOPNOTSUPP"), false},
		{"UD alone, known", fault("ibv_create_qp", "qp_types: [RC, UC]", "EOPNOTSUPP"), true},
		{"no QPs", fault("ibv_create_qp", "", "EOPNOTSUPP"), false},
		{"QPs refused ambiguously", fault("ibv_create_qp", "", "EINVAL"), false},
		{"no memory for a QP", fault("ibv_create_qp", "", "ENOMEM"), false},
		{"no CQs", fault("ibv_create_cq", "", "EOPNOTSUPP"), false},
		{"no memory for a CQ", fault("ibv_create_cq", "", "ENOMEM"), false},
		{"no PD", fault("ibv_alloc_pd", "", "EIO"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var facts *state.Facts
			if tc.known {
				first := still(t, parse(t, tc.device), probe.Options{Config: quick()})
				facts = first.Facts
			}
			r := still(t, parse(t, tc.device), probe.Options{Config: quick(), Facts: facts, Short: true, Reduced: inUse})
			if r.Error != "" || r.Undestroyed != nil || r.Reduced == nil || r.Reduced.Detail != "somebody" ||
				r.Depth != state.DepthReduced || r.Facts != nil || r.Info == nil {
				t.Fatalf("%+v", r)
			}
			var lines []string
			for _, p := range r.Probes {
				sizes := join(p.QPs, func(q state.QPSize) string { return q.Type })
				lines = append(lines, fmt.Sprintf("%s %s %s, skipped: %s, failures: %s", p.Name, p.Status, sizes, skips(p.Skips), failures(p)))
			}
			for _, c := range r.Calls {
				if v := verbs.Verb(c.Verb); slices.Contains(creators, v) || strings.Contains(c.Verb, "modify") || strings.Contains(c.Verb, "post") {
					lines = append(lines, c.Verb+" "+c.Errno)
				}
			}
			rec.Add(tc.name, lines...)
		})
	}
}
