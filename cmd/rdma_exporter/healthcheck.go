package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/text"
)

// healthcheck are the flags of the command healthcheck.
type healthcheck struct {
	url     string
	ready   bool
	timeout time.Duration
}

const (
	// tlsWanted is the answer of a Go server, with status 400, to a request without TLS.
	tlsWanted = "Client sent an HTTP request to an HTTPS server."
	// maxHealthBody limits how much of an answer is read, in bytes.
	maxHealthBody = 4096
)

func (h *healthcheck) add(app *kingpin.Application) {
	c := app.Command(commandHealthcheck, "Ask a running exporter whether it is healthy, and exit: with status 1 if it is not.").
		HelpLong(`Asks a running exporter for /-/healthy, or with --ready for /-/ready, and prints the answer. The exit status is 0 if the exporter is healthy, 1 if it is not or does not answer, and 2 if the command line is wrong.

It needs no secret: an exporter that asks for a password or a client certificate is alive. Its readiness then remains unknown.`)
	c.Flag("url", "Where the exporter listens. http also works if it speaks TLS.").
		Default("http://127.0.0.1" + defaultAddress).StringVar(&h.url)
	c.Flag("ready", "Ask whether every device found at first has been probed.").
		BoolVar(&h.ready)
	c.Flag("timeout", "Time limit for the whole check.").
		Default("5s").DurationVar(&h.timeout)
}

func runHealthcheck(ctx context.Context, o *options, std stdio) int {
	h := &o.health
	// A password would be sent to any server, since certificates are not verified.
	target, err := exporterURL(h.url, h.timeout, "drop them, none is needed")
	if err != nil {
		complain(std, fmt.Errorf("%w, try --help", err))
		return exitUsage
	}
	target = target.JoinPath("-", map[bool]string{true: "ready", false: "healthy"}[h.ready])
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	verdict, err := h.ask(ctx, target)
	if err != nil {
		complain(std, fmt.Errorf("%s: %w", target, err))
		return exitFailed
	}
	fmt.Fprintf(std.out, "%s: %s\n", target, verdict)
	return exitOK
}

// exporterURL checks --url and --timeout. Instead says what to do with a password.
func exporterURL(given string, timeout time.Duration, instead string) (*url.URL, error) {
	if timeout <= 0 {
		return nil, fmt.Errorf("--timeout is %s: use a duration above 0s", timeout)
	}
	if strings.Contains(given, "@") {
		return nil, fmt.Errorf("--url has a user or a password: %s", instead)
	}
	full := given
	if !strings.Contains(given, "://") {
		full = "http://" + given
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.ContainsAny(given, "?#") {
		return nil, fmt.Errorf("--url is %q: use http://HOST:PORT or https://HOST:PORT", given)
	}
	return u, nil
}

// ask returns a good answer, and anything else as an error. If the server speaks only TLS, it
// changes the scheme of u and asks again.
func (h *healthcheck) ask(ctx context.Context, u *url.URL) (string, error) {
	status, line, err := get(ctx, u)
	if err == nil && u.Scheme == "http" && status == http.StatusBadRequest && line == tlsWanted {
		u.Scheme = "https"
		status, line, err = get(ctx, u)
		if err != nil && !errors.Is(err, errCertificate) && !errors.Is(err, syscall.ECONNREFUSED) && ctx.Err() == nil && !h.ready {
			// A restart mends no TLS: without its key, the exporter would not start.
			return fmt.Sprintf("it is alive, but its TLS fails: %v", err), nil
		}
	}
	answer := fmt.Sprintf("%d %s", status, http.StatusText(status))
	var wants string
	switch {
	case errors.Is(err, context.Canceled):
		return "", errors.New("interrupted before it answered")
	case errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("no answer within %s", h.timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "", fmt.Errorf("%w; nothing listens there: the exporter has ended, or listens elsewhere (--url)", err)
	case errors.Is(err, errCertificate):
		answer, wants = "TLS handshake refused", "a client certificate"
	case err != nil:
		return "", err
	case status == http.StatusUnauthorized:
		wants = "a password"
	case status == http.StatusTooManyRequests:
		wants = "fewer requests"
	case status != http.StatusOK:
		return "", fmt.Errorf("%s: %s", answer, line)
	default:
		return answer + ": " + line, nil
	}
	if h.ready {
		return "", fmt.Errorf("%s: it wants %s, so its readiness cannot be checked from here; drop --ready to check only that it is alive", answer, wants)
	}
	return fmt.Sprintf("%s: it wants %s, so it is alive", answer, wants), nil
}

// errCertificate is returned if the server answers only clients with a certificate.
var errCertificate = errors.New("a client certificate is wanted")

// get returns status and first line of the answer.
func get(ctx context.Context, u *url.URL) (status int, line string, err error) {
	var wantsCertificate atomic.Bool // A goroutine of the transport sets it.
	client := http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{ // It uses no proxy.
			DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{
				// No secret is sent. An exporter with an expired certificate is alive.
				InsecureSkipVerify: true,
				MinVersion:         tls.VersionTLS12,
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					wantsCertificate.Store(true)
					return &tls.Certificate{}, nil // none
				},
			},
		},
	}
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

// fetch returns status and beginning of an answer.
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
	if body, err = io.ReadAll(io.LimitReader(response.Body, maxHealthBody)); err != nil {
		return 0, nil, fmt.Errorf("read the answer: %w", err)
	}
	return response.StatusCode, body, nil
}
