package probe_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// The most that a run may create on a device that is known: QPs, and objects in all.
const (
	mostQPs       = 12
	mostCreations = 40
)

// creators are the verbs that create something.
var creators = []verbs.Verb{
	verbs.AllocPD, verbs.RegMR, verbs.RegDMABufMR, verbs.CreateAH, verbs.CreateCompChannel, verbs.CreateCQ, verbs.CreateSRQ, verbs.CreateQP,
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

// runTurn is run of a turn, with the facts that earlier runs found out.
func runTurn(t *testing.T, p *simulated.Profile, device string, c probe.Config, facts *state.Facts, number *int) state.Run {
	t.Helper()
	r := state.Run{Device: device}
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		err := probe.Run(t.Context(), probe.Options{
			Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) },
			Device:   device, Driver: driverOf(p, device), Config: c, Facts: facts, Turn: number, Out: wire.NewWriter(&out),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := wire.Read(&out, &r); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// found lists what a run has to show, without figures: sizes, memory, measurements, and
// what was skipped.
func found(r *state.Run) map[string]bool {
	all := make(map[string]bool)
	for _, p := range r.Probes {
		for _, q := range p.CQs {
			all["cq "+q.Profile] = true
		}
		for _, q := range p.SRQs {
			all["srq "+q.Profile] = true
		}
		for _, q := range p.QPs {
			all[fmt.Sprintf("qp %s %s %+v", q.Type, q.Profile, q.Requested)] = true
		}
		for _, i := range p.Inline {
			all[fmt.Sprintf("inline %s %d", i.Type, i.Bytes)] = true
		}
		for _, m := range p.Memory {
			all[fmt.Sprintf("memory %s %s", m.Object, m.Profile)] = true
		}
		for _, m := range p.Registrations {
			all[fmt.Sprintf("registration %s %s", m.Memory, m.Result)] = true
		}
		for _, s := range p.Skips {
			all[fmt.Sprintf("skip %s %s %s %s", p.Name, s.Subject, s.Reason, s.Detail)] = true
		}
		for _, c := range p.Clamps {
			all[fmt.Sprintf("clamp %+v", c)] = true
		}
		for _, w := range p.Ways {
			all[fmt.Sprintf("way %+v", w)] = true
		}
		for _, l := range p.Latencies {
			name := fmt.Sprintf("%s %s %d", l.Path, l.Mode, l.Port)
			if l.Path == state.PathLoopback && l.Mode == state.ModeAny {
				name += fmt.Sprintf("/%d", l.Vector)
			}
			all[name] = true
		}
	}
	return all
}

// TestTurns: on whatever device, a run that knows it creates little, and after one round
// all was seen that a run that does everything sees.
func TestTurns(t *testing.T) {
	devices := map[string]string{}
	for _, name := range simulated.Default().Names() {
		devices[name] = "like: " + name
	}
	devices["every type, and an inline limit of its own"] = "like: sim_ib0, qp_types: [RC, UC, UD, RAW_PACKET], max_inline_data: 173"
	devices["two ports"] = "like: sim_ib0, completion_vectors: 3, ports: [" +
		`{number: 1, state: active, link_layer: InfiniBand, lid: 1, active_mtu: 1024, gids: []}, ` +
		`{number: 2, state: active, link_layer: InfiniBand, lid: 2, active_mtu: 1024, gids: []}]`
	devices["five addresses that lead nowhere"] = addresses(1, 2, 3, 4, 5, 6) + ", faults: [{verb: ibv_modify_qp, when: {gids: [1, 2, 3, 4, 5], to: [RTR]}, errno: EINVAL}]"
	profiles := map[string]*simulated.Profile{}
	for name, device := range devices {
		p, err := simulated.ParseProfile([]byte("devices: [{name: dev, " + device + ", default_latency: 0s, latency: {}}]"))
		if err != nil {
			t.Fatal(err)
		}
		profiles[name] = p
	}
	for _, a := range adapters() {
		profiles[a.String()] = a.load(t)
	}
	for name, p := range profiles {
		t.Run(name, func(t *testing.T) {
			c := quick()
			c.Notification.Deadline = 50 * time.Millisecond
			dev := p.Devices[0].Name
			turn := 0
			first := runTurn(t, p, dev, c, nil, &turn)
			if first.Turn != nil || first.Facts == nil {
				t.Fatalf("a device of which nothing is known: turn %+v, facts %+v", first.Turn, first.Facts)
			}
			firstQPs, firstAll := creations(&first)
			worstQPs, worstAll := 0, 0
			want, seen := found(&first), make(map[string]bool)
			for turn = range 12 {
				r := runTurn(t, p, dev, c, first.Facts, &turn)
				if r.Turn == nil || r.Facts != nil || r.Error != "" {
					t.Fatalf("turn %d: %+v, facts %+v, error %q", turn, r.Turn, r.Facts, r.Error)
				}
				for _, p := range r.Probes {
					if p.Status == state.StatusFailed {
						t.Errorf("turn %d: %s: %+v", turn, p.Name, p.Failures)
					}
				}
				qps, all := creations(&r)
				if qps > mostQPs || all > mostCreations {
					t.Errorf("turn %d: %d QPs and %d creations in all, want %d and %d at most", turn, qps, all, mostQPs, mostCreations)
				}
				worstQPs, worstAll = max(worstQPs, qps), max(worstAll, all)
				maps.Copy(seen, found(&r))
				// What is common to all devices, and what is known, is there each time.
				for what := range want {
					if small := strings.HasSuffix(what, " small") || strings.HasPrefix(what, "inline ") || strings.HasPrefix(what, "skip qp "); small && !found(&r)[what] {
						t.Errorf("turn %d: no %s", turn, what)
					}
				}
			}
			t.Logf("first %d QPs and %d creations, then %d and %d at most", firstQPs, firstAll, worstQPs, worstAll)
			for what := range want {
				// Huge pages are registered in the first run alone.
				if first := strings.HasPrefix(what, "registration huge_page "); seen[what] == first {
					t.Errorf("%s: had its turn: %v, want %v", what, seen[what], !first)
				}
			}
			for what := range seen {
				if !want[what] {
					t.Errorf("not seen by the run that did everything: %s", what)
				}
			}
		})
	}
}

// addresses are the keys of a device of which a port has GIDs of these indices, the best
// first.
func addresses(indices ...int) string {
	var gids []string
	for _, i := range indices {
		gids = append(gids, fmt.Sprintf(`{index: %d, gid: "::ffff:192.0.2.%d", type: RoCE v2}`, i, i))
	}
	return "like: sim_rxe0, completion_vectors: 1, ports: [{number: 1, state: active, link_layer: Ethernet, active_mtu: 1024, gids: [" +
		strings.Join(gids, ", ") + "]}]"
}

// TestKnownWays: the way that was found is taken again, and says why no better one is,
// until there is something else to choose from or it leads nowhere.
func TestKnownWays(t *testing.T) {
	probed := func(keys string, facts *state.Facts) (r state.Run, way state.Way, tried int) {
		t.Helper()
		p, err := simulated.ParseProfile([]byte("devices: [{name: dev, " + keys + ", default_latency: 0s, latency: {}}]"))
		if err != nil {
			t.Fatal(err)
		}
		turn := 0
		r = runTurn(t, p, "dev", quick(), facts, &turn)
		for _, c := range r.Calls {
			if c.Verb == string(verbs.ModifyQP) && c.Errno == "EINVAL" {
				tried++
			}
		}
		return r, byWhat(r.Probes[5], state.PathLoopback), tried
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
		{"a better one would do by now", addresses(1, 2, 3), "GID 3", true, false, false},
		{"another address", addresses(1, 2, 3, 4) + refusing("1"), "GID 2", false, true, true},
		{"it leads nowhere any more", addresses(1, 2, 3) + refusing("3"), "GID 1", false, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, way, tried := probed(tc.device, first.Facts)
			if !strings.HasPrefix(way.By, tc.by) || (way == found) != tc.same {
				t.Errorf("gone is %+v", way)
			}
			if (tried > 0) != tc.tried || (r.Facts != nil) != tc.news {
				t.Errorf("%d refusals, facts %+v", tried, r.Facts)
			}
			if r.Facts != nil && len(r.Facts.Ways) != 2 {
				t.Errorf("ways %+v", r.Facts.Ways)
			}
		})
	}
}

// TestPolledIsNotSleptOn: what was polled for one measurement is not slept on in another:
// a queue can be armed by what was asked before.
func TestPolledIsNotSleptOn(t *testing.T) {
	p, err := simulated.ParseProfile([]byte("devices: [{name: dev, like: sim_rxe0, completion_vectors: 1}]"))
	if err != nil {
		t.Fatal(err)
	}
	channels := func(r *state.Run) (n int) {
		for _, c := range r.Calls {
			if c.Verb == string(verbs.CreateCompChannel) {
				n++
			}
		}
		return n
	}
	// That of the probe of channels, and two for each path and each who sleeps anew.
	whole := runTurn(t, p, "dev", quick(), nil, nil)
	if n := channels(&whole); n != 9 {
		t.Errorf("%d channels where polling is between, want 9", n)
	}
	turn := 0
	r := runTurn(t, p, "dev", quick(), whole.Facts, &turn)
	if n := channels(&r); n != 5 {
		t.Errorf("%d channels where polling is last, want 5", n)
	}
}

// TestFacts: what is known is asked for again only where the device has become another
// one, and what was not found out is no fact.
func TestFacts(t *testing.T) {
	parse := func(keys string) *simulated.Profile {
		t.Helper()
		p, err := simulated.ParseProfile([]byte("devices: [{name: dev, like: sim_rxe0" + keys + "}]"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	turn := 0
	first := runTurn(t, parse(""), "dev", quick(), nil, &turn)
	expected := func(r *state.Run) (n int) {
		for _, c := range r.Calls {
			if c.Verb == string(verbs.CreateQP) && c.Expected {
				n++
			}
		}
		return n
	}
	if n := expected(&first); n == 0 {
		t.Error("nothing was asked for in order to be refused")
	}
	for _, tc := range []struct {
		name, device string
		facts        *state.Facts
		turn         *int
		learns       bool
		whole        bool
	}{
		{"the same device", "", first.Facts, &turn, false, false},
		{"the same device, everything", "", first.Facts, nil, false, true},
		{"other firmware", ", fw_version: other", first.Facts, &turn, true, true},
		{"another kernel", ", kernel: '9.9'", first.Facts, &turn, true, true},
		{"nothing known", "", nil, nil, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := runTurn(t, parse(tc.device), "dev", quick(), tc.facts, tc.turn)
			if learnt := expected(&r) > 0; learnt != tc.learns || (r.Facts != nil) != tc.learns {
				t.Errorf("asked for what is refused: %t, facts %+v", learnt, r.Facts)
			}
			if (r.Turn == nil) != tc.whole {
				t.Errorf("turn %+v", r.Turn)
			}
			if r.Facts != nil && len(r.Facts.Absent)+len(r.Facts.Inline) != len(verbs.QPTypes()) {
				t.Errorf("facts %+v", r.Facts)
			}
		})
	}

	// The search of the first type fails, and nothing else: the next run searches again.
	broken := runTurn(t, parse(", faults: [{verb: ibv_create_qp, after: 4, times: 1, errno: EIO}]"), "dev", quick(), nil, nil)
	if broken.Facts == nil || slices.ContainsFunc(broken.Facts.Inline, func(m state.InlineMax) bool { return m.Type == "rc" }) || len(broken.Facts.Inline) != 2 {
		t.Fatalf("after a search that failed: %+v", broken.Facts)
	}
	next := runTurn(t, parse(""), "dev", quick(), broken.Facts, &turn)
	if next.Facts == nil || len(next.Facts.Inline) != 3 || next.Turn == nil {
		t.Errorf("the search again: facts %+v, turn %+v", next.Facts, next.Turn)
	}

	// A type that there was and that is refused now is a failure, not a lack.
	gone := runTurn(t, parse(", faults: [{verb: ibv_create_qp, when: {qp_types: [UC]}, errno: EOPNOTSUPP}]"), "dev", quick(), first.Facts, &turn)
	if qp := gone.Probes[3]; qp.Status != state.StatusFailed || !strings.Contains(qp.Failures[0].Message, "EOPNOTSUPP") || qp.Failures[0].Subject != "uc small" {
		t.Errorf("a type that was there: %s: %+v", qp.Status, qp.Failures)
	}
}

// What nobody wants to see is not measured.
func TestLeftOut(t *testing.T) {
	c := quick()
	whole := runStill(t, simulated.Default(), "sim_ib0", c)
	c.NoMemory, c.Notification.OneVector = true, true
	c.Notification.Vectors.Most = 4
	turn := 1
	for name, r := range map[string]state.Run{
		"everything": runStill(t, simulated.Default(), "sim_ib0", c),
		"by turns":   runTurn(t, simulated.Default(), "sim_ib0", c, whole.Facts, &turn),
	} {
		memory, vectors, measured := 0, make(map[int]bool), 0
		for _, p := range r.Probes {
			memory += len(p.Memory)
			for _, l := range p.Latencies {
				vectors[l.Vector] = true
				measured++
			}
		}
		if memory != 0 || measured == 0 || len(vectors) != 1 || !vectors[0] {
			t.Errorf("%s: memory of %d objects, %d measurements on vectors %v", name, memory, measured, vectors)
		}
		if r.Outcome == state.OutcomeFailed || len(r.Probes) != len(whole.Probes) {
			t.Errorf("%s: %s with %d probes, want %d", name, r.Outcome, len(r.Probes), len(whole.Probes))
		}
	}
}
