package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/ceiling"
)

// The process of a climb is not believed, and not waited for, without bounds.
func TestClimber(t *testing.T) {
	t.Parallel()
	const climbing = `echo '{"version":1,"device":"x","type":"qp","phase":"climbing","objects":7,"left":7,"began":"2026-11-23T03:00:00Z"}'; `
	const back = `echo '{"version":1,"device":"x","type":"qp","phase":"giving_back","objects":7,"left":4,"ended_by":"device","began":"2026-11-23T03:00:00Z"}'; `
	for _, c := range []struct {
		name, script string
		silence      time.Duration
		interrupted  bool
		end          ceiling.End
		back         ceiling.GivenBack
		objects      int64
		detail, left string
	}{
		{"hangs", climbing + "exec sleep 1000", 5 * time.Second, false, ceiling.EndError, ceiling.ByKernel, 7, "ibv_create_qp has not returned for 5s", ""},
		{"hangs in giving back", back + "exec sleep 1000", 5 * time.Second, false, ceiling.EndDevice, ceiling.ByKernel, 7, "", "ibv_destroy_qp has not returned for 5s"},
		{"is interrupted", climbing + "exec sleep 1000", time.Hour, true, ceiling.EndInterrupted, ceiling.ByKernel, -1, "it was interrupted", ""},
		{"fails", climbing + "echo out of luck >&2; exit 2", time.Hour, false, ceiling.EndError, ceiling.ByKernel, 7, "ended too early: exit status 2; it said: out of luck", ""},
		{"is killed", climbing + "kill -9 $$", time.Hour, false, ceiling.EndError, ceiling.ByKernel, 7, "for lack of memory", ""},
		{"says nonsense", climbing + "echo nonsense; exec sleep 1000", time.Hour, false, ceiling.EndError, ceiling.ByKernel, 7, "read the report of the climb", ""},
		{"says what is unknown", `echo '{"version":1,"more":2}'; exec sleep 1000`, time.Hour, false, ceiling.EndError, ceiling.ByKernel, 0, "unknown field", ""},
		{"says nothing", "exit 0", time.Hour, false, ceiling.EndError, ceiling.ByKernel, 0, "ended too early", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.interrupted {
				cancel()
			}
			w := climber{device: "x", silence: c.silence, end: time.Hour}
			w.report = ceiling.Report{Type: ceiling.QP, Phase: ceiling.PhaseClimbing, Began: time.Now()}
			if err := w.start(selfPath, []byte(c.script)); err != nil {
				t.Fatal(err)
			}
			w.watch(ctx)
			r := w.report
			if r.Phase != ceiling.PhaseEnded || r.EndedBy != c.end || r.GivenBack != c.back || !strings.Contains(r.Detail, c.detail) || !strings.Contains(r.LeftDetail, c.left) {
				t.Errorf("%+v", r)
			}
			if c.objects >= 0 && r.Objects != c.objects {
				t.Errorf("%d objects, want %d", r.Objects, c.objects)
			}
		})
	}
}
