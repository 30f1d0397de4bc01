package web_test

import (
	"encoding/json"
	"net/http/httptest"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
)

// TestRendering makes sure that however many ask, the page and the JSON are made no
// more than once a second each.
func TestRendering(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/api/v1/status"} {
		// What is asked for, in half seconds, and what each rendering takes.
		var made, seconds, takes atomic.Int64
		c := hostConfig(apitest.Host{})
		c.Status = func(now time.Time) *api.Status {
			made.Add(1)
			seconds.Add(takes.Load())
			return status(apitest.Many(2, 8), now)
		}
		c.Now = func() time.Time { return apitest.Now().Add(time.Duration(seconds.Load()) * time.Second / 2) }
		h := handler(t, c)
		ask := func(want int64) {
			t.Helper()
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if w := get(h, "GET", path); w.Code != 200 || w.Body.Len() < 1000 {
						t.Errorf("%s: got %d with %d bytes", path, w.Code, w.Body.Len())
					}
				})
			}
			wg.Wait()
			if got := made.Load(); got != want {
				t.Errorf("%s: after %d half seconds made %d times, want %d", path, seconds.Load(), got, want)
			}
		}
		ask(1)
		seconds.Store(1)
		ask(1)
		seconds.Store(2)
		ask(2)
		seconds.Store(-100) // a clock that was set back
		ask(3)
		takes.Store(10) // longer than what was made is served again
		seconds.Store(0)
		ask(4)
		ask(4)
		seconds.Add(1)
		ask(4)
		seconds.Add(1)
		ask(5)
	}
}

// TestAPI makes sure that the JSON is the status, whichever way it is sent.
func TestAPI(t *testing.T) {
	t.Parallel()
	for _, host := range apitest.Hosts() {
		c := hostConfig(host)
		h := handler(t, c)
		want, err := json.Marshal(status(host, apitest.Now()))
		if err != nil {
			t.Fatal(err)
		}
		w := get(h, "GET", "/api/v1/status")
		if got := w.Body.String(); got != string(want)+"\n" {
			t.Errorf("%s: got %s\nwant %s", host.Name, got, want)
		}
		for name, want := range map[string]string{
			"Content-Type": "application/json", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Vary": "Accept-Encoding",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s: got %q, want %q", host.Name, name, got, want)
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/status", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		zipped := httptest.NewRecorder()
		h.ServeHTTP(zipped, r)
		if got := unzip(t, zipped); got != string(want)+"\n" {
			t.Errorf("%s: compressed: got %s", host.Name, got)
		}
		var again api.Status
		if err := json.Unmarshal(want, &again); err != nil {
			t.Errorf("%s: %v", host.Name, err)
		}
		if b, err := json.Marshal(&again); err != nil || string(b) != string(want) || reflect.ValueOf(again).IsZero() {
			t.Errorf("%s: read back it is %s, %v", host.Name, b, err)
		}
	}
}
