// Package healthcheck asks a running exporter for its health and its verdict, over HTTP.
package healthcheck

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/common/config"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/input"
	"rdma_exporter/internal/text"
	"rdma_exporter/internal/verdict"
)

const (
	// tlsWanted is the answer of a Go server, with status 400, to a request without TLS.
	tlsWanted = "Client sent an HTTP request to an HTTPS server."
	// maxBody limits how much of an answer is read, in bytes.
	maxBody = 4096
)

// Target checks the values of --url and --timeout, and returns the URL of the exporter. Instead says
// what to do with a password.
func Target(given string, timeout time.Duration, instead string) (*url.URL, error) {
	u, err := url.Parse(map[bool]string{false: "http://"}[strings.Contains(given, "://")] + given)
	switch {
	case timeout <= 0:
		return nil, fmt.Errorf("--timeout is %s: use a duration above 0s", timeout)
	case strings.Contains(given, "@"):
		return nil, fmt.Errorf("--url has a user or a password: %s", instead)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.ContainsAny(given, "?#"):
		return nil, fmt.Errorf("--url is %q: use http://HOST:PORT or https://HOST:PORT", given)
	}
	return u, nil
}

// Ask asks whether an exporter is healthy, or whether it is ready. It returns the URL and a good
// answer in one line, and anything else as an error. It sends no secret and verifies no certificate.
func Ask(ctx context.Context, u *url.URL, ready bool, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	u = u.JoinPath("-", map[bool]string{true: "ready", false: "healthy"}[ready])
	status, line, err := get(ctx, u)
	if u.Scheme == "http" && status == http.StatusBadRequest && line == tlsWanted {
		u.Scheme = "https"
		status, line, err = get(ctx, u)
		if err != nil && !errors.Is(err, errCertificate) && !errors.Is(err, syscall.ECONNREFUSED) && ctx.Err() == nil && !ready {
			// A restart mends no TLS: without its key, the exporter would not start.
			return fmt.Sprintf("%s: it is alive, but its TLS fails: %v", u, err), nil
		}
	}
	answer, wants := fmt.Sprintf("%d %s", status, http.StatusText(status)), ""
	switch {
	case errors.Is(err, context.Canceled):
		err = errors.New("interrupted before it answered")
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("no answer within %s", timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		err = fmt.Errorf("%w; nothing listens there: the exporter has ended, or listens elsewhere (--url)", err)
	case errors.Is(err, errCertificate):
		answer, wants, err = "TLS handshake refused", "a client certificate", nil
	case err != nil:
	case status == http.StatusUnauthorized:
		wants = "a password"
	case status == http.StatusTooManyRequests:
		wants = "fewer requests"
	case status != http.StatusOK:
		err = fmt.Errorf("%s: %s", answer, line)
	}
	switch {
	case wants != "" && ready:
		err = fmt.Errorf("%s: it wants %s, so its readiness cannot be checked from here; drop --ready to check only that it is alive", answer, wants)
	case wants != "":
		line = "it wants " + wants + ", so it is alive"
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", u, err)
	}
	return fmt.Sprintf("%s: %s: %s", u, answer, line), nil
}

// errCertificate is returned if the server answers only clients with a certificate.
var errCertificate = errors.New("a client certificate is wanted")

func get(ctx context.Context, u *url.URL) (status int, line string, err error) {
	var wantsCertificate atomic.Bool // A goroutine of the transport sets it.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		// It uses no proxy and sends no secret. An exporter with an expired certificate is alive.
		InsecureSkipVerify: true, MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			wantsCertificate.Store(true)
			return &tls.Certificate{}, nil // none
		},
	}}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	status, body, err := fetch(ctx, &client, u)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		// The server sends an alert, or resets the connection if the request was on its way.
		if wantsCertificate.Load() && ctx.Err() == nil {
			return 0, "", errCertificate
		}
		return 0, "", failed.Err // The caller names the URL.
	}
	line, _, _ = strings.Cut(string(body), "\n")
	return status, text.Clean(strings.TrimSpace(line)), err
}

// fetch returns status and beginning of an answer. The status is 0 with an error.
func fetch(ctx context.Context, client *http.Client, u *url.URL) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if body, err = io.ReadAll(io.LimitReader(response.Body, maxBody)); err != nil {
		return 0, nil, fmt.Errorf("read the answer: %w", err)
	}
	return response.StatusCode, body, nil
}

// Client returns a client with the CA and secrets of the file that an option names. It may be empty.
func Client(option, file string) (client *http.Client, err error) {
	var c *config.HTTPClientConfig
	b := []byte("{}")
	if file != "" {
		b, err = input.ReadFile(file)
	}
	if err == nil {
		c, err = config.LoadHTTPConfig(string(b))
	}
	if err == nil {
		c.SetDirectory(filepath.Dir(file))
		c.FollowRedirects = false // Secrets would follow.
		client, err = config.NewClientFromConfig(*c, "rdma_exporter", config.WithKeepAlivesDisabled())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", option, err)
	}
	return client, nil
}

// Verdict returns the verdict of an exporter for the parameters of [verdict.Parse]. With an error,
// the verdict says that it is missing.
func Verdict(ctx context.Context, client *http.Client, u *url.URL, query url.Values, timeout time.Duration) (found verdict.Verdict, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	u = u.JoinPath(api.VerdictPath)
	u.RawQuery = query.Encode()
	status, body, err := fetch(ctx, client, u)
	answer := fmt.Sprintf("%d %s", status, http.StatusText(status))
	kind, detail := verdict.KindRefused, "no verdict by "+u.Host
	switch {
	case err != nil:
		kind, detail = verdict.KindUnreachable, u.Host
	case status != http.StatusOK:
		detail, err = answer+" by "+u.Host, fmt.Errorf("%s: %s: %s", u, answer, body)
	case json.Unmarshal(body, &found) != nil || !found.Valid():
		err = fmt.Errorf("%s: the answer is no verdict", u)
	default:
		return found, nil
	}
	return verdict.Verdict{Status: verdict.Unknown, Line: verdict.Line(kind, "", detail, health.RemedyExporter)}, err
}
