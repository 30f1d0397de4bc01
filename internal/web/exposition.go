package web

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/singleflight"
)

// exposition serves the metrics. Each answer is made as a whole and then sent, so that
// a client that reads slowly takes none of the places of those whose answers are made.
// Those who ask for the same meanwhile, in the same encoding, get the same: memory and
// processors that scrapes take do not grow with the number of scrapers. promhttp.HandlerOpts.CoalesceGather does
// not do that: it shares what is gathered, which costs least, and for as long as any
// answer of it is being sent, so that with enough clients nothing is ever gathered anew.
// It is safe for concurrent use.
type exposition struct {
	// handle makes an answer, without compression.
	handle func(*answer, *http.Request)
	making singleflight.Group
	// plain has a place for each answer that may be as text while it is sent.
	plain chan struct{}
	// zip holds the writer that is kept for the next answer. A new one takes a megabyte,
	// which makes two collections of garbage fall into each scrape.
	zip chan *gzip.Writer
	// size is how long the latest answer was that was left as it is.
	size atomic.Int64
}

// For a client that does not take it compressed, an answer is left as it is, which costs
// least. But those who read slowly keep what they are sent in memory: of many such
// answers, or of one that is long, that is compressed all the same until it is sent.
const (
	maxPlainAnswers = 4
	maxPlain        = 512 << 10
)

func newExposition(handle func(*answer, *http.Request)) *exposition {
	return &exposition{handle: handle, plain: make(chan struct{}, maxPlainAnswers), zip: make(chan *gzip.Writer, 1)}
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

// ServeHTTP implements http.Handler. If handle panics, it does so for all who wait.
func (e *exposition) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, plain := keyOf(r), false
	if !acceptsGzip(r.Header.Values("Accept-Encoding")) {
		select {
		case e.plain <- struct{}{}:
			defer func() { <-e.plain }()
			key, plain = key+" plain", true
		default:
		}
	}
	made, _, _ := e.making.Do(key, func() (any, error) { return e.make(r, plain), nil })
	a := made.(*answer)
	for name, values := range a.header {
		w.Header()[name] = slices.Clone(values)
	}
	code := max(a.code, http.StatusOK)
	if a.plain {
		sendPlain(w, r, code, a.body.Bytes())
		return
	}
	send(w, r, code, a.body.Bytes())
}

// make makes the answer to a request.
func (e *exposition) make(r *http.Request, plain bool) *answer {
	a := &answer{header: make(http.Header), plain: plain, take: e.take}
	if plain {
		a.body.Grow(int(e.size.Load()))
	}
	e.handle(a, r)
	if a.plain {
		e.size.Store(int64(a.body.Len()))
		return a
	}
	_ = a.compressor().Close() // A buffer takes everything.
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

// answer is an http.ResponseWriter that keeps what is written, compressed or not.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
	// plain tells that body is not compressed.
	plain bool
	take  func(io.Writer) *gzip.Writer
	// zip compresses into body; nil while nothing is compressed.
	zip *gzip.Writer
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
func (a *answer) Write(b []byte) (int, error) {
	if a.plain && a.body.Len()+len(b) > maxPlain {
		text := a.body
		a.body, a.plain = bytes.Buffer{}, false
		_, _ = a.compressor().Write(text.Bytes()) // A buffer takes everything.
	}
	if a.plain {
		return a.body.Write(b)
	}
	return a.compressor().Write(b)
}

// reset forgets what was written.
func (a *answer) reset() {
	a.body.Reset()
	if a.zip != nil {
		a.zip.Reset(&a.body)
	}
}

// compressor returns what compresses into the body.
func (a *answer) compressor() *gzip.Writer {
	if a.zip == nil {
		a.zip = a.take(&a.body)
	}
	return a.zip
}
