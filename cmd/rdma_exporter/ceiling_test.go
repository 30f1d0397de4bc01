package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/ceiling"
	"rdma_exporter/internal/refusal"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// TestFollow verifies that no search is awaited without bounds.
func TestFollow(t *testing.T) {
	for _, c := range []struct {
		name      string
		hangs     verbs.Verb
		interrupt time.Duration
		end       refusal.Cause
		detail    string
		left      string
	}{
		{"hangs", verbs.AllocPD, time.Hour, refusal.Unknown, "has not returned for 1m0s", "has not returned"},
		{"hangs when destroying", verbs.DeallocPD, time.Hour, ceiling.EndTime, "--within", "has not returned"},
		{"is interrupted", verbs.AllocPD, 3 * time.Second, ceiling.EndInterrupted, "interrupted", "interrupted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := simulated.Default()
				p.Devices[0].Latency = map[verbs.Verb]time.Duration{verbs.AllocPD: time.Second}
				p.Devices[0].Faults = []simulated.Fault{{Verb: c.hangs, After: 5, Times: 1, Delay: 10 * time.Minute}}
				ctx, cancel := context.WithTimeoutCause(t.Context(), c.interrupt, errors.New("a signal"))
				defer cancel()
				r := follow(ctx, ceiling.Options{
					Provider: simulated.New(p, verbs.NopTracer{}), Device: p.Devices[0].Name, Type: "pd",
					Within: 10 * time.Second, Memory: 1 << 40, Host: refusal.System{Procfs: "/proc"},
				}, stdio{})
				if r.EndedBy != c.end || r.GivenBack != ceiling.ByKernel || r.Objects == 0 || r.Left == 0 ||
					!strings.Contains(r.Detail, c.detail) || !strings.Contains(r.LeftDetail, c.left) {
					t.Errorf("%+v", r)
				}
				time.Sleep(2 * time.Hour) // The search ends.
			})
		})
	}
}
