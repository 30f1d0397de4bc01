package web

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"

	"golang.org/x/sync/singleflight"
)

// exposition serves the metrics. Each answer is made as a whole and then sent, so that
// a client that reads slowly takes none of the places of those whose answers are made.
// Those who ask for the same meanwhile get the same: memory and processors that scrapes
// take do not grow with the number of scrapers. promhttp.HandlerOpts.CoalesceGather does
// not do that: it shares what is gathered, which costs least, and for as long as any
// answer of it is being sent, so that with enough clients nothing is ever gathered anew.
// It is safe for concurrent use.
type exposition struct {
	// handler makes an answer, without compression.
	handler http.Handler
	making  singleflight.Group
	// zip holds the writer that is kept for the next answer. A new one takes a megabyte,
	// which makes two collections of garbage fall into each scrape.
	zip chan *gzip.Writer
}

func newExposition(handler http.Handler) *exposition {
	return &exposition{handler: handler, zip: make(chan *gzip.Writer, 1)}
}

// take returns a writer to w.
func (e *exposition) take(w io.Writer) *gzip.Writer {
	select {
	case z := <-e.zip:
		z.Reset(w)
		return z
	default:
	}
	// promhttp compresses as well, at a level that makes a scrape take half as long again.
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		panic(err) // Only if there were no such level.
	}
	return z
}

// keep keeps a writer for the next answer, unless one is kept.
func (e *exposition) keep(z *gzip.Writer) {
	z.Reset(io.Discard) // It must not keep the answer.
	select {
	case e.zip <- z:
	default:
	}
}

// ServeHTTP implements http.Handler. If the handler panics, it does so for all who wait.
func (e *exposition) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	made, _, _ := e.making.Do(keyOf(r), func() (any, error) { return e.make(r), nil })
	a := made.(*answer)
	for name, values := range a.header {
		w.Header()[name] = slices.Clone(values)
	}
	send(w, r, max(a.code, http.StatusOK), a.zipped.Bytes())
}

// make makes the answer to a request.
func (e *exposition) make(r *http.Request) *answer {
	a := &answer{header: make(http.Header)}
	a.zip = e.take(&a.zipped)
	e.handler.ServeHTTP(a, r)
	_ = a.zip.Close() // A buffer takes everything.
	e.keep(a.zip)
	return a
}

// keyOf returns what makes the answers to two requests differ.
func keyOf(r *http.Request) string {
	key := fmt.Sprintf("%q", r.Header.Values("Accept"))
	for _, parameter := range []string{nameParameter, collectParameter, excludeParameter} {
		values := slices.Clone(r.URL.Query()[parameter])
		slices.Sort(values)
		key += fmt.Sprintf(" %q", slices.Compact(values))
	}
	return key
}

// The parameters of the URL that choose what is exposed: metrics, which promhttp
// does, and collectors.
const (
	nameParameter    = "name[]"
	collectParameter = "collect[]"
	excludeParameter = "exclude[]"
)

// answer is an http.ResponseWriter that keeps what is written, compressed.
type answer struct {
	header http.Header
	code   int
	zip    *gzip.Writer
	zipped bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. The first call counts.
func (a *answer) WriteHeader(code int) {
	if a.code == 0 {
		a.code = code
	}
}

// Write implements io.Writer.
func (a *answer) Write(b []byte) (int, error) { return a.zip.Write(b) }
