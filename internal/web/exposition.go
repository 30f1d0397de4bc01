package web

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/common/expfmt"
)

// exposition serves the metrics. Each answer is made as a whole and then sent, so that
// a client that reads slowly holds up nobody. One is made at a time: memory and
// processors that scrapes take do not grow with the number of scrapers. Those who ask
// for the same before it is begun get the same, which is as fresh as they asked for.
// It is safe for concurrent use.
type exposition struct {
	// handler makes an answer, without compression.
	handler http.Handler
	// most is how many answers may be made or wait for their turn; zero is no limit.
	most int
	// turn has the one answer that is being made.
	turn chan struct{}
	// zips has writers of type *gzip.Writer.
	zips sync.Pool
	// last is the length of the latest answer, which the next one will have, about.
	last, lastZipped atomic.Int64

	mu sync.Mutex
	// waiting are the answers that are not begun, by what makes them differ.
	waiting map[string]*answer
	// making is how many are being made or wait for that.
	making int
}

// answer is what is sent to those who asked for it.
type answer struct {
	// made is closed when the rest has its final value.
	made   chan struct{}
	header http.Header
	code   int
	body   []byte
}

func newExposition(handler http.Handler, most int) *exposition {
	return &exposition{
		handler: handler, most: most, turn: make(chan struct{}, 1), waiting: make(map[string]*answer),
		zips: sync.Pool{New: func() any {
			// promhttp compresses too, at a level that takes longer than all the rest of a
			// scrape; the fastest takes a sixth of that and gives little away, for an
			// exposition repeats itself a lot.
			z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
			if err != nil {
				panic(err) // Only if there were no such level.
			}
			return z
		}},
	}
}

// ServeHTTP implements http.Handler.
func (e *exposition) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept-Encoding")
	a := e.answer(r)
	if a == nil {
		// Also to who seems to have gone: it may have closed one direction only.
		http.Error(w, fmt.Sprintf("Limit of concurrent requests reached (%d), try again later.", e.most), http.StatusServiceUnavailable)
		return
	}
	a.send(w, r)
}

// answer returns the answer to a request; nil if too many are being made, or if the
// client has gone meanwhile.
func (e *exposition) answer(r *http.Request) *answer {
	zipped := acceptsGzip(r.Header.Values("Accept-Encoding"))
	key := keyOf(r, zipped)
	e.mu.Lock()
	if a, ok := e.waiting[key]; ok {
		e.mu.Unlock()
		select {
		case <-a.made:
			return a
		case <-r.Context().Done():
			return nil
		}
	}
	if e.most > 0 && e.making >= e.most {
		e.mu.Unlock()
		return nil
	}
	a := &answer{made: make(chan struct{}), code: http.StatusInternalServerError}
	e.waiting[key] = a
	e.making++
	e.mu.Unlock()

	// Others may have come to rely on this answer, so that it is made even if its client
	// goes. It is waited for no longer than it takes to make as many as there may be.
	e.turn <- struct{}{}
	e.mu.Lock()
	delete(e.waiting, key)
	e.mu.Unlock()
	defer func() {
		<-e.turn
		e.mu.Lock()
		e.making--
		e.mu.Unlock()
		close(a.made)
	}()
	e.make(a, r, zipped)
	return a
}

// keyOf returns all that makes the answers to two requests differ.
func keyOf(r *http.Request, zipped bool) string {
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	names := slices.Clone(r.URL.Query()["name[]"])
	slices.Sort(names)
	return fmt.Sprintf("%t %q %q", zipped, format, slices.Compact(names))
}

// make makes an answer.
func (e *exposition) make(a *answer, r *http.Request, zipped bool) {
	last := &e.last
	if zipped {
		last = &e.lastZipped
	}
	body := new(bytes.Buffer)
	if len(r.URL.RawQuery) == 0 {
		body.Grow(int(last.Load() + last.Load()/8))
	}
	rec := recorder{header: make(http.Header), body: body}
	if zipped {
		z := e.zips.Get().(*gzip.Writer)
		defer func() {
			z.Reset(io.Discard) // the pool must not keep the answer
			e.zips.Put(z)
		}()
		z.Reset(body)
		rec.body = z
		e.handler.ServeHTTP(&rec, r)
		_ = z.Close() // A buffer takes everything.
		rec.header.Set("Content-Encoding", "gzip")
	} else {
		e.handler.ServeHTTP(&rec, r)
	}
	a.header, a.body, a.code = rec.header, body.Bytes(), max(rec.code, http.StatusOK)
	if len(r.URL.RawQuery) == 0 {
		last.Store(int64(len(a.body)))
	}
}

// send sends an answer to one client.
func (a *answer) send(w http.ResponseWriter, r *http.Request) {
	defer clientOf(r.Context()).hold(a)()
	h := w.Header()
	for name, values := range a.header {
		h[name] = append(h[name], values...)
	}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.code)
	if r.Method != http.MethodHead {
		if _, err := w.Write(a.body); err != nil {
			clientOf(r.Context()).gone(r)
		}
	}
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	code   int
	body   io.Writer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter. The first call counts.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
}

// Write implements io.Writer.
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
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
