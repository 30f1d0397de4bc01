package contract_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/probe/contract"
	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
	"rdma_exporter/verbs/simulated/simulatedtest"
)

func device(t *testing.T, yaml string) *simulated.Profile {
	t.Helper()
	p := running.Must(simulatedtest.Parse([]byte("devices:\n  - name: sim0\n" + yaml)))(t)
	return p
}

// checked checks the device of a profile, in virtual time, and returns the report.
func checked(t *testing.T, p *simulated.Profile, skip ...string) (r state.Run) {
	t.Helper()
	return checkedBy(t, p, func(p verbs.Provider) verbs.Provider { return p }, skip...)
}

// checkedBy is checked with a provider that replaces the simulated one.
func checkedBy(t *testing.T, p *simulated.Profile, replace func(verbs.Provider) verbs.Provider, skip ...string) (r state.Run) {
	t.Helper()
	r.Device = p.Devices[0].Name
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		start := time.Now()
		err := contract.Run(t.Context(), contract.Options{
			Options: session.Options{
				Provider: func(tr verbs.Tracer) verbs.Provider { return replace(simulated.New(p, tr)) },
				Device:   r.Device, DestroyTimeout: time.Second, Out: wire.NewWriter(&out),
			},
			Driver: driverOf(p), Skip: skip,
		})
		if err != nil {
			t.Fatal(err)
		}
		running.Check(t, wire.Read(&out, &r))
		// The default of --contract.timeout, above which the process would be killed.
		if d := time.Since(start); d > time.Minute {
			t.Errorf("the contract run took %v", d)
		}
	})
	return r
}

// driverOf returns the driver that the device of a profile is said to have.
func driverOf(p *simulated.Profile) errata.Driver {
	return errata.Driver{Name: p.Devices[0].Driver, Kernel: p.Devices[0].Kernel}
}

func verdicts(r state.Run, v state.Verdict) []string {
	names := []string{}
	for _, c := range r.Contracts {
		if c.Verdict == v {
			names = append(names, c.Name)
		}
	}
	return names
}

func evidence(r state.Run) string {
	var b strings.Builder
	for _, c := range r.Contracts {
		b.WriteString(string(c.Verdict) + " " + string(c.Reason) + " " + c.Name + "\n  asked:    " + c.Asked + "\n  expected: " + c.Expected + "\n  observed: " + c.Observed + "\n")
	}
	return b.String()
}

// wantClean verifies that the contract run was complete and left nothing.
func wantClean(t *testing.T, r state.Run) {
	t.Helper()
	if r.Error != "" || len(r.Undestroyed) > 0 || r.InProgress != "" {
		t.Errorf("error %q, undestroyed %v, still checking %q", r.Error, r.Undestroyed, r.InProgress)
	}
	for _, c := range r.Calls {
		if c.Errno != "" && !c.Expected {
			t.Errorf("%s failed with %s, which was not expected", c.Verb, c.Errno)
		}
	}
}

// whole is a device on which every contract can be checked.
const whole = "    like: sim_ib0\n"

func TestEachBreakIsSeenByItsContract(t *testing.T) {
	t.Parallel()
	for _, name := range append([]string{""}, simulated.Contracts()...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			yaml, want := whole, []string{}
			if name != "" {
				yaml, want = yaml+"    violate: ["+name+"]\n", []string{name}
			}
			r := checked(t, device(t, yaml))
			wantClean(t, r)
			if got := verdicts(r, state.VerdictViolated); !slices.Equal(got, want) {
				t.Errorf("violated: %v, want %v\n%s", got, want, evidence(r))
			}
			if got := verdicts(r, state.VerdictSkipped); len(got) > 0 {
				t.Errorf("skipped: %v\n%s", got, evidence(r))
			}
			if len(r.Contracts) != len(contract.Catalogue()) {
				t.Errorf("%d verdicts", len(r.Contracts))
			}
			for _, c := range r.Contracts {
				if broken := c.Verdict == state.VerdictViolated; broken != (c.Consequence != "") || broken != (c.Remedy != "") {
					t.Errorf("%s is %s, of consequence %q and remedy %q", c.Name, c.Verdict, c.Consequence, c.Remedy)
				}
				if c.Asked == "" || c.Expected == "" || c.Observed == "" || c.Duration <= 0 {
					t.Errorf("evidence is lacking: %+v", c)
				}
			}
		})
	}
}

func skipped(r state.Run) map[string]state.SkipReason {
	reasons := make(map[string]state.SkipReason)
	for _, c := range r.Contracts {
		if c.Verdict == state.VerdictSkipped {
			reasons[c.Name] = c.Reason
		}
	}
	return reasons
}

func TestDefaultDevices(t *testing.T) {
	t.Parallel()
	needLoopback := []string{"srq_limit_event", "srq_limit_disarmed", "qp_sq_sig_all", "notify_solicited_skips_unsolicited", "notify_solicited_delivers_solicited"}
	const portDown = `    ports:
      - {number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, gids: []}
`
	with := func(reason state.SkipReason, names ...string) map[string]state.SkipReason {
		m := make(map[string]state.SkipReason)
		for _, name := range names {
			m[name] = reason
		}
		return m
	}
	noSRQ := with(state.SkipNotSupported, "srq_at_least_requested", "srq_reports_actual", "srq_limit_ignored",
		"srq_limit_event", "srq_limit_disarmed", "srq_destroy_busy", "qp_srq_type_restricted", "qp_recv_caps_ignored_with_srq")
	iwarp := with(state.SkipNotSupported, append(slices.Clone(needLoopback), "cq_ex_at_least_requested", "cq_ex_batch_keeps_completions", "cq_resize_at_least_requested",
		"cq_resize_too_small_refused", "cq_resize_keeps_completions", "qp_srq_type_restricted")...)
	for _, tt := range []struct {
		name, yaml string
		violated   []string
		skipped    map[string]state.SkipReason
	}{
		{
			"like Soft-RoCE", "    like: sim_rxe0\n",
			[]string{"srq_reports_actual", "qp_reports_actual"},
			with(""),
		},
		{"like an adapter", "    like: sim_ib0\n", nil, with("")},
		{"like software iWARP", "    like: sim_siw0\n", nil, iwarp},
		{
			"port down", "    like: sim_rxe0\n" + portDown,
			[]string{"srq_reports_actual", "qp_reports_actual"},
			with(state.SkipPortDown, needLoopback...),
		},
		{
			"port down, events broken", "    like: sim_ib0\n    violate: [notify_solicited_delivers_errors, notify_requires_arming]\n" + portDown,
			[]string{"notify_requires_arming", "notify_solicited_delivers_errors"},
			with(state.SkipPortDown, needLoopback...),
		},
		{"no SRQ", "    like: sim_ib0\n    limits: {max_srq: 0}\n", nil, noSRQ},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := checked(t, device(t, tt.yaml))
			wantClean(t, r)
			if got := verdicts(r, state.VerdictViolated); !slices.Equal(got, tt.violated) {
				t.Errorf("violated: %v, want %v\n%s", got, tt.violated, evidence(r))
			}
			if got := skipped(r); !maps.Equal(got, tt.skipped) {
				t.Errorf("skipped: %v, want %v\n%s", got, tt.skipped, evidence(r))
			}
		})
	}
}

// TestAnyVerbFails has each verb fail, always or for a time. Each contract gets a verdict and
// nothing is left. A verb that never works, or fails for a moment, is no violation.
func TestAnyVerbFails(t *testing.T) {
	t.Parallel()
	for _, verb := range verbs.Verbs() {
		for _, fault := range []string{
			"errno: EIO", "errno: ENOMEM", "errno: EACCES", "errno: EINVAL", "errno: EOPNOTSUPP",
			"errno: ENOMEM, after: 1, times: 1", "errno: ENOMEM, after: 7, times: 1", "errno: ENOMEM, after: 20, times: 1", "errno: EIO, after: 7",
		} {
			t.Run(string(verb)+" "+fault, func(t *testing.T) {
				t.Parallel()
				r := checked(t, device(t, whole+"    completion_vectors: 2\n    faults: [{verb: "+string(verb)+", "+fault+"}]\n"))
				opens := verb != verbs.GetDeviceList && verb != verbs.OpenDevice && verb != verbs.QueryDevice
				if opens && len(r.Contracts) != len(contract.Catalogue()) {
					t.Errorf("%d verdicts; error %q", len(r.Contracts), r.Error)
				}
				destroys := strings.Contains(string(verb), "_destroy_") || strings.Contains(string(verb), "_de") || verb == verbs.CloseDevice
				if len(r.Undestroyed) > 0 && !destroys && verb != verbs.AckCQEvents {
					t.Errorf("undestroyed: %+v", r.Undestroyed)
				}
				// The man page requires that unused objects can be detached and destroyed.
				if got := verdicts(r, state.VerdictViolated); len(got) > 0 && !destroys {
					t.Errorf("violated: %v\n%s", got, evidence(r))
				}
				// A verb that always fails proves no contract.
				needs := map[verbs.Verb]string{
					verbs.CreateCQ: "cq_at_least_requested", verbs.CreateCQEx: "cq_ex_at_least_requested", verbs.StartPoll: "cq_ex_at_least_requested", verbs.ResizeCQ: "cq_resize_at_least_requested", verbs.CreateQP: "qp_at_least_requested",
					verbs.CreateSRQ: "srq_at_least_requested", verbs.ModifySRQ: "srq_limit_event", verbs.GetAsyncEvent: "srq_limit_event", verbs.QuerySRQ: "srq_reports_actual",
					verbs.QueryQP:     "qp_reports_actual",
					verbs.ReqNotifyCQ: "notify_any", verbs.GetCQEvent: "notify_any", verbs.PostSend: "qp_sq_sig_all",
					verbs.PollCQ: "notify_requires_arming", verbs.CreateCompChannel: "channel_destroy_busy",
					verbs.ModifyQP: "notify_one_shot", verbs.PostRecv: "notify_solicited_delivers_solicited",
				}
				for _, c := range r.Contracts {
					if !strings.Contains(fault, "after") && needs[verb] == c.Name && c.Verdict != state.VerdictSkipped {
						t.Errorf("%s: %s: %s", c.Name, c.Verdict, c.Observed)
					}
				}
			})
		}
	}
}

// TestUDOnly verifies that a device without RC queue pairs is checked by UD ones.
func TestUDOnly(t *testing.T) {
	t.Parallel()
	r := checked(t, device(t, "    like: sim_ib0\n    qp_types: [UD]\n"))
	wantClean(t, r)
	if got := verdicts(r, state.VerdictViolated); len(got) > 0 {
		t.Errorf("violated: %v\n%s", got, evidence(r))
	}
	want := map[string]state.SkipReason{
		"qp_srq_type_restricted": state.SkipNotSupported, "qp_sq_sig_all": state.SkipNotSupported,
		"srq_limit_event": state.SkipNotSupported, "srq_limit_disarmed": state.SkipNotSupported,
		"notify_solicited_skips_unsolicited": state.SkipNotSupported, "notify_solicited_delivers_solicited": state.SkipNotSupported,
	}
	if got := skipped(r); !maps.Equal(got, want) {
		t.Errorf("skipped: %v, want %v\n%s", got, want, evidence(r))
	}
}

// TestPresumption verifies the provisional verdict if the process ends within a check.
func TestPresumption(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, yaml, last string
		contract         string
		proven           bool
	}{
		{
			"a proven violation survives the cleaning up", "    violate: [cq_destroy_busy]\n", `{"begin":"ibv_destroy_qp"}`,
			"cq_destroy_busy", true,
		},
		{
			"what must work after a refusal", "", `{"begin":"ibv_post_srq_recv"}`,
			"srq_destroy_busy", false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var skip []string
			for _, c := range contract.Catalogue() {
				if c.Name != tt.contract {
					skip = append(skip, c.Name)
				}
			}
			p := device(t, "    like: sim_ib0\n"+tt.yaml)
			var out bytes.Buffer
			err := contract.Run(t.Context(), contract.Options{
				Options: session.Options{
					Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) },
					Device:   "sim0", Out: wire.NewWriter(&out),
				},
				Skip: skip,
			})
			if err != nil {
				t.Fatal(err)
			}
			_, checking, _ := strings.Cut(out.String(), `{"checking"`)
			// Controls call the like before.
			end := strings.LastIndex(checking, tt.last)
			if end < 0 {
				t.Fatalf("no line %s in\n%s", tt.last, checking)
			}
			before := checking[:end]
			var r state.Run
			if err := wire.Read(strings.NewReader(`{"checking"`+before), &r); !errors.Is(err, wire.ErrTruncated) {
				t.Fatal(err)
			}
			if r.Provisional == nil || r.Provisional.Proven != tt.proven || r.Provisional.Contract.Name != tt.contract ||
				r.Provisional.Contract.Verdict != state.VerdictViolated || r.Provisional.Contract.Asked == "" || r.Provisional.Contract.Remedy == "" {
				t.Errorf("presumed: %+v", r.Provisional)
			}
		})
	}
}

func TestWithoutCompletions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := device(t, "    like: sim_ib0\n")
		var out bytes.Buffer
		err := contract.Run(t.Context(), contract.Options{
			Options: session.Options{
				Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) },
				Device:   "sim0", Out: wire.NewWriter(&out),
			},
			WithoutCompletions: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), string(verbs.PostSend)) {
			t.Error("a send was posted")
		}
		var r state.Run
		running.Check(t, wire.Read(&out, &r))
		wantClean(t, r)
		if len(r.Planned) != len(contract.Catalogue()) || len(verdicts(r, state.VerdictSkipped)) != 14 {
			t.Errorf("%d planned, skipped are %v", len(r.Planned), skipped(r))
		}
	})
}

func TestSkip(t *testing.T) {
	var names []string
	for _, c := range contract.Catalogue()[1:] {
		names = append(names, c.Name)
	}
	r := checked(t, device(t, "    like: sim_ib0\n"), names...)
	wantClean(t, r)
	if len(r.Contracts) != 1 || r.Contracts[0].Name != contract.Catalogue()[0].Name {
		t.Errorf("checked: %s", evidence(r))
	}
}

// TestNamesContractInProgress verifies that an incomplete report names the contract.
func TestNamesContractInProgress(t *testing.T) {
	p := device(t, "    like: sim_ib0\n")
	out := &cutOff{after: `{"checking":"srq_reports_actual"}`}
	err := contract.Run(t.Context(), contract.Options{
		Options: session.Options{
			Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) },
			Device:   "sim0", Out: wire.NewWriter(out),
		},
	})
	if err == nil {
		t.Error("no error of a report that cannot be written")
	}
	var r state.Run
	if err := wire.Read(&out.Buffer, &r); !errors.Is(err, wire.ErrTruncated) {
		t.Errorf("error %v of a report without end", err)
	}
	if r.InProgress != "srq_reports_actual" {
		t.Errorf("checking %q", r.InProgress)
	}
}

// cutOff takes everything up to a line, and then nothing.
type cutOff struct {
	bytes.Buffer
	after string
	full  bool
}

func (c *cutOff) Write(p []byte) (int, error) {
	if c.full {
		return 0, errors.New("full")
	}
	c.full = strings.Contains(string(p), c.after)
	return c.Buffer.Write(p)
}

func TestEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := device(t, "    like: sim_ib0\n")
	var out bytes.Buffer
	err := contract.Run(ctx, contract.Options{
		Options: session.Options{
			Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) },
			Device:   "sim0", Out: wire.NewWriter(&out),
		},
	})
	if !errors.Is(err, context.Canceled) || strings.Contains(out.String(), "checking") {
		t.Errorf("error %v after\n%s", err, out.String())
	}
}
