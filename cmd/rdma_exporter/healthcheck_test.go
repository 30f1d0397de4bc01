package main

import (
	"bytes"
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

	"rdma_exporter/test/running"
)

// healthchecked is what the command healthcheck left.
type healthchecked struct {
	status   int
	out, err string
}

// check runs the command healthcheck, without haste unless a timeout is given.
func check(ctx context.Context, args ...string) healthchecked {
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--timeout=") }) {
		args = append(args, "--timeout=1m")
	}
	var out, errs bytes.Buffer
	status := run(ctx, append([]string{"healthcheck"}, args...), stdio{in: strings.NewReader(""), out: &out, err: &errs})
	return healthchecked{status, out.String(), errs.String()}
}

// want fails the test unless the command ended with a status, and said one line with
// each of these texts: of success to standard output, of anything else to standard
// error.
func (h healthchecked) want(t *testing.T, status int, texts ...string) {
	t.Helper()
	said, silent := h.out, h.err
	if status != exitOK {
		said, silent = h.err, h.out
	}
	if h.status != status || silent != "" || strings.Count(said, "\n") != 1 || !strings.HasSuffix(said, "\n") {
		t.Errorf("status %d, output %q, errors %q; want status %d and one line", h.status, h.out, h.err, status)
	}
	for _, text := range texts {
		if !strings.Contains(said, text) {
			t.Errorf("it says %q, which has no %q", said, text)
		}
	}
}

// serving starts a server that ends with the test and whose complaints nobody reads.
func serving(t *testing.T, handler http.HandlerFunc, how func(*httptest.Server)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	how(s)
	t.Cleanup(s.Close)
	return s
}

// answering is a handler that answers always the same.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestHealthcheckAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		answer         http.HandlerFunc
		healthy, ready int
		says           []string // by both
	}{
		{"healthy", answering(200, "rdma_exporter is well.\nreally\n"), 0, 0, []string{": 200 OK: rdma_exporter is well.\n"}},
		{"password", answering(401, "no password\n"), 0, 1, []string{": 401 ", ": it wants a password, so "}},
		{"rate", answering(429, "Too Many Requests\n"), 0, 1, []string{": 429 Too Many Requests: it limits the rate of requests, so "}},
		{"unavailable", answering(503, "rdma_exporter is not ready: waiting.\n"), 1, 1, []string{": 503 Service Unavailable: rdma_exporter is not ready: waiting.\n"}},
		{"broken", answering(500, "Internal Server Error\n"), 1, 1, []string{": 500 Internal Server Error: Internal Server Error\n"}},
		{"something else", answering(404, "404 page not found\n"), 1, 1, []string{": 404 Not Found: 404 page not found\n"}},
		{"nothing", answering(204, ""), 1, 1, []string{": 204 No Content: (an empty line)\n"}},
		{"unknown status", answering(799, ""), 1, 1, []string{": 799: (an empty line)\n"}},
		{"escapes", answering(200, "\x1b[2J\xff\r\n"), 0, 0, []string{": \ufffd[2J\ufffd\n"}},
		{"endless", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, strings.Repeat("x", maxHealthBody))
			}
		}, 0, 0, []string{": 200 OK: xxx"}},
		{"other bad request", answering(400, "Bad Request\n"), 1, 1, []string{"http://", ": 400 Bad Request: Bad Request\n"}},
		{"redirection", func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/-/") {
				http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
			}
		}, 1, 1, []string{": 301 Moved Permanently: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serving(t, c.answer, (*httptest.Server).Start)
			check(t.Context(), "--url="+s.URL).want(t, c.healthy, append(c.says, s.URL+"/-/healthy: ")...)
			check(t.Context(), "--url="+s.URL, "--ready").want(t, c.ready, append(c.says, s.URL+"/-/ready: ")...)
		})
	}
}

// What is asked for, and how.
func TestHealthcheckRequest(t *testing.T) {
	// Not parallel: the environment is for all tests.
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("NO_PROXY", "")
	s := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "" || r.ContentLength != 0 {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, r.Host+r.URL.Path)
	}, (*httptest.Server).Start)
	address := s.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	for given, want := range map[string]string{
		s.URL:                             address + "/-/healthy",
		s.URL + "/":                       address + "/-/healthy",
		s.URL + "/behind/proxy":           address + "/behind/proxy/-/healthy",
		address:                           address + "/-/healthy",
		"http://0.0.0.0:" + port + "/a b": "0.0.0.0:" + port + "/a b/-/healthy", // never by a proxy, as loopback is
	} {
		check(t.Context(), "--url="+given).want(t, exitOK, ": 200 OK: "+want+"\n")
	}
}

// A server that speaks TLS is asked by TLS, whatever the URL says and whatever its
// certificate; one that wants a client certificate is alive.
func TestHealthcheckTLS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		config         *tls.Config
		healthy, ready int
		says           string
	}{
		{"any", &tls.Config{}, 0, 0, "200 OK: well\n"},
		{"old", &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}, 0, 0, "200 OK: well\n"},
		{"optional certificate", &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven}, 0, 0, "200 OK: well\n"},
		{"certificate", &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}, 0, 1, "TLS handshake refused: it wants a client certificate, so "},
		{"certificate, TLS 1.2", &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}, 0, 1, "TLS handshake refused: it wants a client certificate, so "},
		{"no certificate of its own", &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return nil, io.ErrUnexpectedEOF
		}}, 1, 1, "remote error: tls: internal error\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serving(t, answering(200, "well\n"), func(s *httptest.Server) {
				s.TLS = c.config.Clone()
				s.StartTLS()
			})
			address := s.Listener.Addr().String()
			for range 4 { // Who is first, the alert or the reset, is chance.
				for _, given := range []string{"https://" + address, "http://" + address, address} {
					check(t.Context(), "--url="+given).want(t, c.healthy, "https://"+address+"/-/healthy: "+c.says)
					check(t.Context(), "--url="+given, "--ready").want(t, c.ready, "https://"+address+"/-/ready: "+c.says)
				}
			}
		})
	}
}

// A server that wants a certificate may reset the connection before its alert is read.
func TestHealthcheckReset(t *testing.T) {
	t.Parallel()
	own := serving(t, nil, (*httptest.Server).StartTLS).TLS.Certificates
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var server sync.WaitGroup
	server.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_ = tls.Server(c, &tls.Config{Certificates: own, ClientAuth: tls.RequestClientCert}).Handshake()
			_ = c.(*net.TCPConn).SetLinger(0) // so that Close resets
			_ = c.Close()
		}
	})
	t.Cleanup(server.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	address := "https://" + listener.Addr().String()
	check(t.Context(), "--url="+address).want(t, exitOK, address+"/-/healthy: TLS handshake refused: ")
}

// Whoever does not answer, or not to the end, is not healthy.
func TestHealthcheckSilence(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	servers := map[string]*httptest.Server{
		"headers": serving(t, func(http.ResponseWriter, *http.Request) { <-release }, (*httptest.Server).Start),
		"body": serving(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "rdma")
			w.(http.Flusher).Flush()
			<-release
		}, (*httptest.Server).Start),
		"handshake": serving(t, answering(200, ""), func(s *httptest.Server) {
			s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				<-release
				return nil, nil
			}}
			s.StartTLS()
		}),
		// It has asked for a client certificate by then, which proves nothing.
		"after the certificate": serving(t, func(http.ResponseWriter, *http.Request) { <-release }, func(s *httptest.Server) {
			s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
			s.StartTLS()
		}),
	}
	t.Cleanup(func() { close(release) }) // so that the servers can end, which comes after this
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t.Context(), "--url="+s.URL, "--timeout=200ms").want(t, exitFailed, s.URL+"/-/healthy: no answer within 200ms\n")
			ctx, cancel := context.WithCancel(t.Context())
			interruption := time.AfterFunc(100*time.Millisecond, cancel)
			defer interruption.Stop()
			check(ctx, "--url="+s.URL, "--timeout=1h").want(t, exitFailed, s.URL+"/-/healthy: interrupted before it answered\n")
		})
	}
}

// So is whoever breaks off, or is not there.
func TestHealthcheckGone(t *testing.T) {
	t.Parallel()
	cut := serving(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, (*httptest.Server).Start)
	check(t.Context(), "--url="+cut.URL).want(t, exitFailed, cut.URL+"/-/healthy: EOF\n")
	gone := "http://" + running.Refusing(t)
	check(t.Context(), "--url="+gone).want(t, exitFailed, gone+"/-/healthy: ", "connection refused", "--url")
}

// headers of any length are not read.
func TestHealthcheckHeader(t *testing.T) {
	t.Parallel()
	s := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 2*maxHealthHeader))
	}, (*httptest.Server).Start)
	check(t.Context(), "--url="+s.URL).want(t, exitFailed, "exceeded")
}

func TestHealthcheckUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flag, says string }{
		{"--url=", `--url is "": use http://HOST:PORT`},
		{"--url=ftp://x", `--url is "ftp://x": use http://HOST:PORT`},
		{"--url=http://:10879", `--url is "http://:10879": use http://HOST:PORT`},
		{"--url=http://x:y", `--url is "http://x:y": invalid port`},
		{"--url=http://x?y", "drop everything from ? or # on"},
		{"--url=http://x#y", "drop everything from ? or # on"},
		{"--url=http://alice:sesame@x", "--url has a user or a password: drop them"},
		{"--timeout=0s", "--timeout is 0s: use a duration above 0s"},
		{"--timeout=x", "--timeout: "},
		{"--config.file=x", "--config.file"},
	} {
		h := check(t.Context(), c.flag)
		h.want(t, exitUsage, c.says, "try --help")
		if strings.Contains(h.err, "sesame") {
			t.Errorf("it repeats the password: %q", h.err)
		}
	}
}
