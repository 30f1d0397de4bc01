package session

import (
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

// maxEvents is the most asynchronous events that are taken at the end of a session, should
// a device raise them without end.
const maxEvents = 256

// Notice notes an asynchronous event that came, for the report; not those which come of
// what is done here: a connection, the end of a queue pair, the limit of an SRQ.
func (s *Session) Notice(e verbs.AsyncEvent) {
	switch e.Type {
	case verbs.EventCommEst, verbs.EventSQDrained, verbs.EventQPLastWQEReached, verbs.EventSRQLimitReached:
	default:
		s.events = state.AddEvents(s.events, state.Events{Type: e.Type.String(), Port: e.Port, Count: 1})
	}
}

// tellEvents takes the asynchronous events that have come, waiting for none, and reports
// all that were noticed. That they cannot be had fails nothing.
func (s *Session) tellEvents() {
	s.Expecting(func(error) bool { return true }, func() {
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
