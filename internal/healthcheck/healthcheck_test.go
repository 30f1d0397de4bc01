package healthcheck_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/healthcheck"
	"rdma_exporter/test/running"
)

// patience is a time limit that a busy machine keeps.
const patience = time.Minute

// checkHealth asks for health, or for readiness, and verifies that a good answer, or else the error, is
// one line with all texts.
func checkHealth(ctx context.Context, t *testing.T, given string, ready bool, timeout time.Duration, good bool, texts ...string) {
	t.Helper()
	u := running.Must(healthcheck.Target(given, timeout, ""))(t)
	said, err := healthcheck.Ask(ctx, u, ready, timeout)
	if err != nil {
		said += err.Error()
	}
	lacks := slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(said+"\n", text) })
	if (err == nil) != good || strings.Contains(said, "\n") || lacks {
		t.Errorf("%s, ready %v: %q, %v; want good %v, and %q in one line", given, ready, said, err, good, texts)
	}
}

// serving starts a server that ends with the test.
func serving(t *testing.T, config *tls.Config, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if s.TLS = config; config != nil {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestHealthcheckAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer         http.HandlerFunc
		healthy, ready bool
		says           string
	}{
		{answering(200, "rdma_exporter is well.\nreally\n"), true, true, ": 200 OK: rdma_exporter is well.\n"},
		{answering(401, "no password\n"), true, false, ": 401 " + http.StatusText(http.StatusUnauthorized) + ": it wants a password, so "},
		{answering(429, "Too Many Requests\n"), true, false, ": 429 Too Many Requests: it wants fewer requests, so "},
		{answering(503, "rdma_exporter is not ready: waiting.\n"), false, false, ": 503 Service Unavailable: rdma_exporter is not ready: waiting.\n"},
		{answering(400, "Bad Request\n"), false, false, ": 400 Bad Request: Bad Request\n"},
		{answering(200, "\x1b[2J\xff\r\n"), true, true, ": 200 OK: \ufffd[2J\ufffd\n"},
		{func(w http.ResponseWriter, r *http.Request) { // It does not end.
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, strings.Repeat("x", 1<<16))
			}
		}, true, true, ": 200 OK: xxx"},
		{func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/-/") {
				http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
			}
		}, false, false, ": 301 Moved Permanently: "},
		{func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, false, ": EOF\n"},
	} {
		s := serving(t, nil, c.answer)
		checkHealth(t.Context(), t, s.URL, false, patience, c.healthy, s.URL+"/-/healthy"+c.says)
		checkHealth(t.Context(), t, s.URL, true, patience, c.ready, s.URL+"/-/ready"+c.says)
	}
	gone := "http://" + running.Refusing(t)
	checkHealth(t.Context(), t, gone, false, patience, false, gone+"/-/healthy: ", "connection refused", "--url")
}

func TestHealthcheckRequest(t *testing.T) {
	// Not parallel: the environment is for all tests.
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("NO_PROXY", "")
	s := serving(t, nil, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host+r.URL.Path) })
	address := s.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	for given, want := range map[string]string{
		s.URL + "/":                       address + "/-/healthy",
		s.URL + "/behind/proxy":           address + "/behind/proxy/-/healthy",
		address:                           address + "/-/healthy",
		"http://0.0.0.0:" + port + "/a b": "0.0.0.0:" + port + "/a b/-/healthy", // Go uses no proxy for loopback.
	} {
		checkHealth(t.Context(), t, given, false, patience, true, ": 200 OK: "+want+"\n")
	}
}

// TestHealthcheckTLS verifies that TLS is spoken, whatever the URL says, if the server wants it. A
// server that wants a client certificate is alive.
func TestHealthcheckTLS(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config         *tls.Config
		healthy, ready bool
		says           string
	}{
		"any":                  {&tls.Config{}, true, true, "200 OK: well\n"},
		"optional certificate": {&tls.Config{ClientAuth: tls.VerifyClientCertIfGiven}, true, true, "200 OK: well\n"},
		"certificate":          {&tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}, true, false, "TLS handshake refused: it wants a client certificate, so "},
		"certificate, TLS 1.2": {&tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}, true, false, "TLS handshake refused: it wants a client certificate, so "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serving(t, c.config.Clone(), answering(200, "well\n")).Listener.Addr().String()
			for range 4 { // Whether the alert or the reset comes first is chance.
				for _, given := range []string{"https://" + address, "http://" + address} {
					checkHealth(t.Context(), t, given, false, patience, c.healthy, "https://"+address+"/-/healthy: "+c.says)
					checkHealth(t.Context(), t, given, true, patience, c.ready, "https://"+address+"/-/ready: "+c.says)
				}
			}
		})
	}
}

// TestHealthcheckBrokenTLS verifies that an exporter whose TLS fails, because its key is missing for a
// moment, is alive and not ready. With https in its URL, the check itself needs TLS.
func TestHealthcheckBrokenTLS(t *testing.T) {
	t.Parallel()
	broken := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, io.ErrUnexpectedEOF }}
	address := serving(t, broken, answering(200, "well\n")).Listener.Addr().String()
	const alert = "remote error: tls: internal error\n"
	checkHealth(t.Context(), t, "http://"+address, false, patience, true, "https://"+address+"/-/healthy: it is alive, but its TLS fails: "+alert)
	checkHealth(t.Context(), t, "https://"+address, false, patience, false, alert)
	checkHealth(t.Context(), t, "http://"+address, true, patience, false, alert)
}

// TestHealthcheckReset verifies that a reset before the alert is read counts as the alert.
func TestHealthcheckReset(t *testing.T) {
	t.Parallel()
	own := serving(t, &tls.Config{}, nil).TLS.Certificates
	listener := running.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	var server sync.WaitGroup
	server.Go(func() {
		if c, err := listener.Accept(); err == nil {
			_ = tls.Server(c, &tls.Config{Certificates: own, ClientAuth: tls.RequestClientCert}).Handshake()
			_ = c.(*net.TCPConn).SetLinger(0) // so that Close resets
			_ = c.Close()
		}
	})
	t.Cleanup(server.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	address := "https://" + listener.Addr().String()
	checkHealth(t.Context(), t, address, false, patience, true, address+"/-/healthy: TLS handshake refused: ")
}

func TestHealthcheckSilence(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	silent := func(http.ResponseWriter, *http.Request) { <-release }
	servers := map[string]*httptest.Server{
		"headers": serving(t, nil, silent),
		"body": serving(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "rdma")
			w.(http.Flusher).Flush()
			<-release
		}),
		"handshake": serving(t, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			<-release
			return nil, nil
		}}, silent),
		// That it has asked for a client certificate proves nothing.
		"after the certificate": serving(t, &tls.Config{ClientAuth: tls.RequestClientCert}, silent),
	}
	t.Cleanup(func() { close(release) }) // so that the servers can end
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkHealth(t.Context(), t, s.URL, false, 200*time.Millisecond, false, s.URL+"/-/healthy: no answer within 200ms\n")
			ctx, cancel := context.WithCancel(t.Context())
			interruption := time.AfterFunc(100*time.Millisecond, cancel)
			defer interruption.Stop()
			checkHealth(ctx, t, s.URL, false, time.Hour, false, s.URL+"/-/healthy: interrupted before it answered\n")
		})
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given   string
		timeout time.Duration
		says    string
	}{
		{"", time.Second, `--url is "": use http://HOST:PORT`},
		{"ftp://x", time.Second, `--url is "ftp://x": use http://HOST:PORT`},
		{"http://:10879", time.Second, `--url is "http://:10879": use http://HOST:PORT`},
		{"http://x:y", time.Second, `--url is "http://x:y": use http://HOST:PORT`},
		{"http://x?y", time.Second, `--url is "http://x?y": use http://HOST:PORT`},
		{"http://alice:sesame@x", time.Second, "--url has a user or a password: drop them"},
		{"http://x", 0, "--timeout is 0s: use a duration above 0s"},
	} {
		u, err := healthcheck.Target(c.given, c.timeout, "drop them")
		if u != nil || err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%q, %s: %v, %v; want %q", c.given, c.timeout, u, err, c.says)
		}
	}
}
