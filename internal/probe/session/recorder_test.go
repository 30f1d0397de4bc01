package session_test

import (
	"bytes"
	"context"
	"reflect"
	"testing"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// TestExhausted: that the device has no more is told where it gave less at once than it was
// asked for, and not where a size was too large, or where it was provoked.
func TestExhausted(t *testing.T) {
	t.Parallel()
	create := func(s *session.Session) verbs.CQ {
		cq, err := s.Device.CreateCQ(verbs.CQInitAttr{Entries: 1})
		if err != nil {
			return nil
		}
		return cq
	}
	destroy := func(s *session.Session, cq verbs.CQ) { _ = s.Destroy("cq", cq) }
	for _, c := range []struct {
		name, fault string
		work        func(*session.Session)
		want        bool
		asked       int
	}{
		{"none is given", "errno: ENOMEM", func(s *session.Session) { create(s); create(s) }, true, 1},
		{"none but one", "errno: ENOMEM, after: 1", func(s *session.Session) {
			one := create(s)
			create(s)
			destroy(s, one)
		}, true, 1},
		{"less than was given before", "errno: ENOMEM, after: 1", func(s *session.Session) {
			destroy(s, create(s))
			create(s)
		}, false, 0},
		{"as many as later", "errno: ENOMEM, times: 1", func(s *session.Session) {
			create(s)
			destroy(s, create(s))
		}, false, 1},
		{"provoked", "errno: ENOMEM", func(s *session.Session) {
			s.Expecting(func(error) bool { return true }, func() { create(s) })
		}, false, 0},
		{"nothing is asked for", "errno: ENOMEM", func(*session.Session) {}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			profile := running.Must(simulated.ParseProfile("profile", []byte("devices: [{name: dev, like: sim_rxe0, faults: [{verb: ibv_create_cq, "+c.fault+"}]}]")))(t)
			refused := state.Refused{Type: "cq", Verb: "ibv_create_cq", Errno: "ENOMEM", Objects: 4012}
			var b bytes.Buffer
			asked := 0
			err := session.Run(t.Context(), session.Options{
				Provider: func(tracer verbs.Tracer) verbs.Provider { return simulated.New(profile, tracer) }, Device: "dev",
				Exhausted: func(err *verbs.Error) (state.Refused, bool) {
					asked++
					return refused, err.Verb == verbs.CreateCQ && err.Device == "dev"
				},
				Out: wire.NewWriter(&b),
			}, func(_ context.Context, s *session.Session) error {
				c.work(s)
				return nil
			})
			var run state.Run
			running.Check(t, wire.Read(&b, &run))
			var want []state.Refused
			if c.want {
				want = []state.Refused{refused}
			}
			if err != nil || !reflect.DeepEqual(run.Refused, want) || asked != c.asked {
				t.Errorf("%v: refused %v, asked %d times, want %d", err, run.Refused, asked, c.asked)
			}
		})
	}
}
