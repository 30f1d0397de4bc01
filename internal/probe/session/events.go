package session

import (
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

// maxEvents limits the asynchronous events that are taken at the end of a session.
const maxEvents = 256

// Notice records an asynchronous event for the report, unless runs cause it themselves: by a
// connection, the end of a queue pair, or the limit of an SRQ.
func (s *Session) Notice(e verbs.AsyncEvent) {
	switch e.Type {
	case verbs.EventCommEst, verbs.EventSQDrained, verbs.EventQPLastWQEReached, verbs.EventSRQLimitReached:
	default:
		s.events = state.AddEvents(s.events, state.Events{Type: e.Type.String(), Port: e.Port, Count: 1})
	}
}

// reportEvents reports the recorded events and those that are pending. It does not wait, and
// its errors do not matter.
func (s *Session) reportEvents() {
	s.Tolerating(func() {
		for range maxEvents {
			e, err := s.Device.AsyncEvent(0)
			if err != nil {
				return
			}
			s.Notice(e)
		}
	})
	if len(s.events) > 0 {
		_ = s.Out.Send(wire.Line{Events: s.events})
	}
}
