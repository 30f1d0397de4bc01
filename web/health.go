package web

import (
	"io"
	"net/http"
	"strings"

	"rdma_exporter/report"
	"rdma_exporter/status"
)

// healthy answers as long as the exporter can answer at all. A failing device is
// no reason to restart the exporter.
func healthy(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, "rdma_exporter is healthy.")
}

// ready answers 200 once each device found at first has been probed, and until
// then 503 with what it waits for.
func ready(snapshot func() *report.Snapshot) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s := snapshot()
		if s != nil && s.Ready {
			respond(w, http.StatusOK, "rdma_exporter is ready.")
			return
		}
		respond(w, http.StatusServiceUnavailable, "rdma_exporter is not ready: "+waitsFor(s)+".")
	})
}

// waitsFor says why a snapshot is not ready.
func waitsFor(s *report.Snapshot) string {
	switch {
	case s == nil:
		return "the devices have not been listed yet"
	case s.DiscoveryError != "":
		return "the devices could not be listed: " + status.Clean(s.DiscoveryError)
	}
	var names []string
	for i := range s.Devices {
		if d := &s.Devices[i]; d.Present && d.Last == nil {
			names = append(names, status.Clean(d.Name))
		}
	}
	if len(names) == 0 {
		return "the first round of probes is not complete"
	}
	return "waiting for the first run on " + strings.Join(names, ", ")
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
