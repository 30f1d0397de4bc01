package probe_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// runLight is run for a device that others use.
func runLight(t *testing.T, device string, facts *state.Facts) state.Run {
	t.Helper()
	p, err := simulated.ParseProfile([]byte("devices: [{name: dev, " + device + "}]"))
	if err != nil {
		t.Fatal(err)
	}
	r := state.Run{Device: "dev"}
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		turn := 3
		if err := probe.Run(t.Context(), probe.Options{
			Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) },
			Device:   "dev", Driver: driverOf(p, "dev"), Config: quick(), Facts: facts, Turn: &turn,
			Light: &state.Light{Reason: state.LightBusy, Detail: "somebody"}, Out: wire.NewWriter(&out),
		}); err != nil {
			t.Fatal(err)
		}
		if err := wire.Read(&out, &r); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// TestLight: whatever the device is, and whether it is known or not, a light run creates
// one CQ and one QP, and nothing else.
func TestLight(t *testing.T) {
	create := func(typ string) string {
		return "faults: [{verb: ibv_create_qp, when: {qp_types: [" + typ + "]}, errno: "
	}
	for _, tc := range []struct {
		name, device string
		known        bool // by an earlier run
		// qp is the type of the QP, and skipped are the types that there are not.
		qp, skipped string
		// refused is how many QPs were asked for in vain.
		refused int
	}{
		{"every type", "like: sim_ib0", false, "rc", "", 0},
		{"no RC", "like: sim_ib0, " + create("RC") + "EOPNOTSUPP}]", false, "uc", "rc", 1},
		{"RC refused like a mistake", "like: sim_ib0, " + create("RC") + "EINVAL}]", false, "uc", "rc", 1},
		{"UD alone", "like: sim_ib0, " + create("RC, UC") + "EOPNOTSUPP}]", false, "ud", "rc uc", 2},
		{"UD alone, as is known", "like: sim_ib0, " + create("RC, UC") + "EOPNOTSUPP}]", true, "ud", "rc uc", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var facts *state.Facts
			if tc.known {
				p, err := simulated.ParseProfile([]byte("devices: [{name: dev, " + tc.device + "}]"))
				if err != nil {
					t.Fatal(err)
				}
				first := runTurn(t, p, "dev", quick(), nil, nil)
				facts = first.Facts
			}
			r := runLight(t, tc.device, facts)
			if r.Error != "" || r.Light == nil || r.Light.Detail != "somebody" || r.Turn != nil || r.Facts != nil || r.Info == nil {
				t.Fatalf("%+v", r)
			}
			if len(r.Probes) != 2 || r.Probes[0].Name != "cq" || r.Probes[1].Name != "qp" {
				t.Fatalf("probes %+v", r.Probes)
			}
			cq, qp := r.Probes[0], r.Probes[1]
			if cq.Status != state.StatusOK || len(cq.CQs) != 1 || cq.CQs[0].Profile != "small" {
				t.Errorf("%+v", cq)
			}
			if qp.Status != state.StatusOK || len(qp.QPs) != 1 || qp.QPs[0].Profile != "small" || qp.QPs[0].Type != tc.qp || (qp.Inline != nil) != tc.known {
				t.Errorf("%+v", qp)
			}
			var skipped []string
			for _, s := range qp.Skips {
				skipped = append(skipped, s.Subject)
			}
			if got := strings.Join(skipped, " "); got != tc.skipped {
				t.Errorf("skipped %q, want %q", got, tc.skipped)
			}
			var made []string
			refused := 0
			for _, c := range r.Calls {
				if v := verbs.Verb(c.Verb); slices.Contains(creators, v) || strings.Contains(c.Verb, "modify") || strings.Contains(c.Verb, "post") {
					if c.Errno == "" {
						made = append(made, c.Verb)
						continue
					}
					refused++
					if c.Expected != (c.Errno == "EOPNOTSUPP") {
						t.Errorf("%+v", c)
					}
				}
			}
			if !slices.Equal(made, []string{"ibv_create_cq", "ibv_alloc_pd", "ibv_create_qp"}) {
				t.Errorf("made %q", made)
			}
			if refused != tc.refused {
				t.Errorf("%d QPs were asked for in vain, want %d", refused, tc.refused)
			}
		})
	}
}

// TestLightFails: what cannot be had is reported as by any run.
func TestLightFails(t *testing.T) {
	fault := func(verb, errno string) string {
		return "like: sim_ib0, faults: [{verb: " + verb + ", errno: " + errno + "}]"
	}
	for _, tc := range []struct {
		name, device string
		probes       []state.Status // of cq and qp
		failure      string         // of the last of them
	}{
		{"no QPs at all", fault("ibv_create_qp", "EOPNOTSUPP"), []state.Status{state.StatusOK, state.StatusSkipped}, ""},
		{"every QP refused like a mistake", fault("ibv_create_qp", "EINVAL"), []state.Status{state.StatusOK, state.StatusFailed}, "rc: EINVAL"},
		{"no memory for a QP", fault("ibv_create_qp", "ENOMEM"), []state.Status{state.StatusOK, state.StatusFailed}, "rc: ENOMEM"},
		{"no CQs", fault("ibv_create_cq", "EOPNOTSUPP"), []state.Status{state.StatusSkipped}, ""},
		{"no memory for a CQ", fault("ibv_create_cq", "ENOMEM"), []state.Status{state.StatusFailed}, "small: ENOMEM"},
		{"no PD", fault("ibv_alloc_pd", "EIO"), []state.Status{state.StatusOK, state.StatusFailed}, "protection domain: EIO"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := runLight(t, tc.device, nil)
			var statuses []state.Status
			failure := ""
			for _, p := range r.Probes {
				statuses = append(statuses, p.Status)
				for _, f := range p.Failures {
					failure = f.Subject + ": " + f.Errno
				}
			}
			if !slices.Equal(statuses, tc.probes) || failure != tc.failure || r.Undestroyed != nil || r.Error != "" {
				t.Errorf("%v, failure %q, undestroyed %v, error %q", statuses, failure, r.Undestroyed, r.Error)
			}
		})
	}
}
