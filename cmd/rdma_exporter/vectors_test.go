package main

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// witness is a provider that notes on which completion vectors CQs were created.
type witness struct {
	verbs.Provider
	vectors map[int]bool
}

func (w witness) Open(name string) (verbs.Device, error) {
	d, err := w.Provider.Open(name)
	return witnessed{d, w.vectors}, err
}

type witnessed struct {
	verbs.Device
	vectors map[int]bool
}

func (w witnessed) CreateCQ(attr verbs.CQInitAttr) (verbs.CQ, error) {
	cq, err := w.Device.CreateCQ(attr)
	if err == nil {
		w.vectors[attr.Vector] = true
	}
	return cq, err
}

// A driver may set up something for good for each completion vector that is used. So
// whatever children do with a device, and however often, they use the same few.
func TestVectorsOfAllRuns(t *testing.T) {
	for _, tc := range []struct {
		name    string
		vectors session.Vectors
		want    []int // of the 64 that sim_ib0 has
	}{
		{"the default", probe.DefaultConfig().Notification.Vectors, []int{0, 21, 42, 63}},
		{"one", session.Vectors{Most: 1}, []int{0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := testCommands(t)
			c.settings.Load().Probe.Notification.Vectors = tc.vectors
			c.settings.Load().Probe.Notification.Samples = 5
			w := witness{vectors: make(map[int]bool)}
			run := func(command child.Command) state.Run {
				var out bytes.Buffer
				r := state.Run{Device: "sim_ib0"}
				in := decoded(t, command.Stdin)
				if err := work(t.Context(), command.Args[0], in.Request, probe.Options{
					Options: session.Options{
						Provider: func(tracer verbs.Tracer) verbs.Provider {
							w.Provider = simulated.New(simulated.Default(), tracer)
							return w
						},
						Device: "sim_ib0", Out: wire.NewWriter(&out),
					},
					Facts: in.Request.Facts, Short: in.Request.Short, Config: in.Settings.Probe,
				}); err != nil {
					t.Fatal(err)
				}
				if err := wire.Read(&out, &r); err != nil || r.Error != "" {
					t.Fatalf("%v, %q", err, r.Error)
				}
				return r
			}
			synctest.Test(t, func(*testing.T) {
				// A full run, and then short ones.
				var known wire.Request
				for range 5 {
					if r := run(c.start(state.KindProbe, "sim_ib0", known)); r.Facts != nil {
						known.Facts = r.Facts
					}
					known.Short = true
				}
				for _, v := range run(c.start(state.KindContract, "sim_ib0", wire.Request{})).Contracts {
					if v.Verdict != state.VerdictHolds {
						t.Errorf("%s %s: %s", v.Name, v.Verdict, v.Observed)
					}
				}
			})
			var got []int
			for v := range 64 {
				if w.vectors[v] {
					got = append(got, v)
				}
			}
			if !slices.Equal(got, tc.want) || len(w.vectors) != len(got) {
				t.Errorf("CQs were created on %v, want %v", w.vectors, tc.want)
			}
		})
	}
}
