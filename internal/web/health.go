package web

import (
	"io"
	"net/http"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// healthy answers as long as the exporter can answer at all. A failing device is
// no reason to restart the exporter.
func healthy(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, "rdma_exporter is healthy.")
}

// ready answers 200 once each device found at first has been probed, and until
// then 503 with what it waits for, in numbers: these paths are shown to whom the
// others are not, and name neither devices nor files.
func ready(snapshot func() *state.Snapshot) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s := snapshot()
		if s != nil && s.Ready {
			respond(w, http.StatusOK, "rdma_exporter is ready.")
			return
		}
		respond(w, http.StatusServiceUnavailable, "rdma_exporter is not ready: "+waitsFor(s)+".")
	})
}

func waitsFor(s *state.Snapshot) string {
	switch {
	case s == nil:
		return "the devices have not been listed yet"
	case s.DiscoveryError != "":
		return "the devices could not be listed; see the status page and the log"
	}
	waiting := 0
	for i := range s.Devices {
		if d := &s.Devices[i]; d.Present && d.Last == nil {
			waiting++
		}
	}
	if waiting == 0 {
		return "the first round of probes is not complete"
	}
	return "waiting for the first run on " + text.Plural(waiting, "device")
}

// respond answers with a line of text. It must not be cached: what it says may
// change at any moment.
func respond(w http.ResponseWriter, code int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	// An error means that the client is gone, and there is nobody to tell.
	_, _ = io.WriteString(w, line+"\n")
}
