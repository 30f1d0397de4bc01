package supervisor

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
)

func TestChangeLogger(t *testing.T) {
	t.Parallel()
	ok := func() *state.Run { return &state.Run{Outcome: state.OutcomeOK} }
	crash := func(verb string) *state.Run {
		return &state.Run{Outcome: state.OutcomeCrashed, Verb: verb, Error: time.Now().String()}
	}
	unopened := func() *state.Run { return &state.Run{Outcome: state.OutcomeFailed, Error: "open the device"} }
	with := func(p state.Probe) *state.Run {
		p.Name = "cq"
		return &state.Run{Outcome: state.OutcomeOK, Depth: state.DepthFull, Probes: []state.Probe{p}}
	}
	skip := state.Probe{Skips: []state.Skip{{Subject: state.Subject{Object: "qp", QPType: "rc"}, Reason: state.SkipNotSupported, Detail: "no"}}}
	clamp := state.Probe{Clamps: []state.Clamp{{Subject: state.Subject{Object: "cq", Profile: "large"}, Attribute: "cqe", Limit: "max_cqe", Configured: 9, Used: 7}}}
	rec := golden.Record(t)
	for _, tt := range []struct {
		name string
		runs []*state.Run
	}{
		{"always ok", []*state.Run{ok(), ok(), ok()}},
		{"fails and recovers", []*state.Run{ok(), crash("x"), crash("x"), ok(), crash("x")}},
		{"in two ways", []*state.Run{crash("x"), crash("y"), crash("x"), crash("y")}},
		{"not opened between skips", []*state.Run{with(skip), unopened(), with(skip)}},
		{"skips and clamps", []*state.Run{with(skip), with(skip), crash("x"), with(skip), with(clamp), with(state.Probe{})}},
	} {
		var log logged
		j := changeLogger{log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
			Level: slog.LevelDebug,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.LevelKey || a.Key == slog.MessageKey {
					return a
				}
				return slog.Attr{}
			},
		}))}
		for _, r := range tt.runs {
			j.probed(r, "")
		}
		rec.Add(tt.name, strings.TrimSpace(log.String()))
	}
}

func TestChangeLoggerDetails(t *testing.T) {
	t.Parallel()
	var log logged
	j := changeLogger{log: log.logger(slog.LevelInfo)}
	j.probed(&state.Run{Outcome: state.OutcomeFailed, Depth: state.DepthFull, Error: "e", Probes: []state.Probe{{
		Name:   "qp",
		Skips:  []state.Skip{{Subject: state.Subject{Object: "qp", QPType: "raw_packet"}, Reason: state.SkipNotPermitted, Detail: "EPERM"}, {Reason: state.SkipNeeds}},
		Clamps: []state.Clamp{{Subject: state.Subject{Object: "qp", QPType: "rc", Profile: "large"}, Attribute: "max_send_wr", Limit: "max_qp_wr", Configured: 9, Used: 7}},
	}}}, "")
	j.probed(&state.Run{Outcome: state.OutcomeCrashed, Error: "e"}, "free(): invalid pointer")
	for _, want := range []string{
		"qp: raw_packet: not_permitted: EPERM; qp: prerequisite_failed",
		"qp: qp_rc large max_send_wr: 7 instead of 9 (max_qp_wr)",
		"free(): invalid pointer",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in %s", want, log.String())
		}
	}
}
