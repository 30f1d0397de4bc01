package web

import (
	"bufio"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// compress returns a handler that answers what h does, compressed with gzip if
// the client takes that. promhttp compresses too, at a level that takes longer
// than all the rest of a scrape; the fastest level takes a sixth of that and gives
// little away, for an exposition repeats itself a lot.
func compress(h http.Handler) http.Handler {
	pool := &sync.Pool{New: func() any {
		z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(err) // Only if there were no such level.
		}
		return z
	}}
	buffers := &sync.Pool{New: func() any { return bufio.NewWriterSize(io.Discard, bufferSize) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !acceptsGzip(r.Header.Values("Accept-Encoding")) {
			// An exposition is written in pieces of 4 KiB, each a system call.
			buffer := buffers.Get().(*bufio.Writer)
			defer func() {
				buffer.Reset(io.Discard) // the pool must not keep the response
				buffers.Put(buffer)
			}()
			buffer.Reset(w)
			h.ServeHTTP(&bufferedWriter{ResponseWriter: w, b: buffer}, r)
			// An error means that the client is gone, and there is nobody to tell.
			_ = buffer.Flush()
			return
		}
		z := pool.Get().(*gzip.Writer)
		defer func() {
			z.Reset(io.Discard) // the pool must not keep the response
			pool.Put(z)
		}()
		z.Reset(w)
		w.Header().Set("Content-Encoding", "gzip")
		h.ServeHTTP(&gzipWriter{ResponseWriter: w, z: z}, r)
		// An error means that the client is gone, and there is nobody to tell.
		_ = z.Close()
	})
}

// bufferSize is how much of a response is written at once, in bytes.
const bufferSize = 64 << 10

// bufferedWriter writes the body of a response in large pieces.
type bufferedWriter struct {
	http.ResponseWriter
	b *bufio.Writer
}

// Write implements io.Writer. It hides that the client is gone: promhttp would log
// that for each of the metrics that are left, and there is nobody to tell.
func (w *bufferedWriter) Write(b []byte) (int, error) {
	_, _ = w.b.Write(b)
	return len(b), nil
}

// gzipWriter compresses the body of a response.
type gzipWriter struct {
	http.ResponseWriter
	z *gzip.Writer
}

// WriteHeader implements http.ResponseWriter.
func (w *gzipWriter) WriteHeader(code int) {
	// http.Error takes the encoding off: what it writes next is compressed all the
	// same.
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(code)
}

// Write implements io.Writer, as that of bufferedWriter.
func (w *gzipWriter) Write(b []byte) (int, error) {
	_, _ = w.z.Write(b)
	return len(b), nil
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
