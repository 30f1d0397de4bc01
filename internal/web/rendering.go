package web

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// freshFor is for how long what was rendered is served again. However many ask, the
// page of a host with many devices is made no more often.
const freshFor = time.Second

// rendering serves what is rendered from the state of the devices. It is safe for
// concurrent use: those who ask while it is being made wait for it together, and get
// the same, however long it takes.
type rendering struct {
	contentType string
	render      func(w io.Writer, now time.Time) error
	now         func() time.Time
	logger      *slog.Logger

	mu sync.Mutex
	// made is when the latest rendering was done, or had failed; zero before the first.
	made time.Time
	// zipped is the latest rendering, which nobody changes; nil if it failed with err. It
	// takes some twentieth of the memory that the text would.
	zipped []byte
	err    error
}

// ServeHTTP implements http.Handler.
func (r *rendering) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	zipped, err := r.latest()
	if err != nil {
		r.logger.Error("Cannot answer", "path", req.URL.Path, "err", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", r.contentType)
	h.Set("Cache-Control", "no-store")
	send(w, req, http.StatusOK, zipped)
}

// latest returns the latest rendering, compressed, and makes it if there is none that
// is fresh. That it failed is kept for as long: what fails may take long as well.
func (r *rendering) latest() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if age := now.Sub(r.made); !r.made.IsZero() && age >= 0 && age < freshFor {
		return r.zipped, r.err
	}
	r.zipped, r.err = r.make(now)
	r.made = r.now()
	return r.zipped, r.err
}

// make makes a rendering, compressed.
func (r *rendering) make(now time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := r.render(z, now); err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return bytes.Clone(b.Bytes()), nil
}

// send sends an answer that is compressed to one client: as it is, or as text if the
// client does not take that.
func send(w http.ResponseWriter, r *http.Request, code int, zipped []byte) {
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		w.Header().Set("Content-Encoding", "gzip")
		sendPlain(w, r, code, zipped)
		return
	}
	text, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return // It was made here, and is compressed.
	}
	sendFrom(w, r, code, text)
}

// sendPlain sends an answer as it is.
func sendPlain(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	sendFrom(w, r, code, bytes.NewReader(body))
}

func sendFrom(w http.ResponseWriter, r *http.Request, code int, body io.Reader) {
	w.Header().Add("Vary", "Accept-Encoding")
	w.WriteHeader(code)
	if r.Method == http.MethodHead {
		return
	}
	if _, err := io.Copy(w, body); err != nil {
		drop(w)
	}
}

// acceptsGzip tells whether the values of Accept-Encoding allow gzip.
func acceptsGzip(values []string) bool {
	for coding := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, parameters, _ := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		weight, found := strings.CutPrefix(strings.ToLower(strings.TrimSpace(parameters)), "q=")
		if !found {
			return true
		}
		q, err := strconv.ParseFloat(weight, 64)
		return err == nil && q > 0
	}
	return false
}
