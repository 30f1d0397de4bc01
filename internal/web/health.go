package web

import (
	"io"
	"net/http"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// healthy always answers 200. A restart of the exporter cures no device.
func healthy(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, "rdma_exporter is healthy.")
}

// ready answers 503 until each device found at the start has been probed. Orchestrators show
// the answer to people who may not see the status page, so it names no device and no file.
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
	case s.StartError != "":
		return "the exporter cannot start its child processes; see the status page and the log"
	}
	waiting := 0
	for i := range s.Devices {
		if d := &s.Devices[i]; d.Present && d.Last == nil {
			waiting++
		}
	}
	if waiting == 0 {
		return "the first probe run has not finished on every device"
	}
	return "waiting for the first run on " + text.Plural(waiting, "device")
}

// respond answers with a line of text that must not be cached.
func respond(w http.ResponseWriter, code int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, line+"\n") // An error means that the client is gone.
}
