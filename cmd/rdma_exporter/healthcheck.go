package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
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
	// tlsWanted is what a server of Go answers, with status 400, to a request
	// without TLS where it speaks TLS only.
	tlsWanted = "Client sent an HTTP request to an HTTPS server."
	// maxHealthBody is the most bytes that are read of an answer: more than the
	// exporter's lines have.
	maxHealthBody = 4096
	// maxHealthHeader is the most bytes of the header of an answer.
	maxHealthHeader = 64 << 10
)

// add adds the command healthcheck with its flags.
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

// run is the command healthcheck.
func (h *healthcheck) run(ctx context.Context, std stdio) int {
	target, err := h.target()
	if err != nil {
		fmt.Fprintf(std.err, "%s: error: %v, try --help\n", programName, err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	said, err := h.ask(ctx, target)
	if err != nil {
		fmt.Fprintf(std.err, "%s: error: %v\n", programName, err)
		return exitFailed
	}
	fmt.Fprintln(std.out, said)
	return exitOK
}

// target returns what is to be asked for, or what is wrong with the flags.
func (h *healthcheck) target() (*url.URL, error) {
	if h.timeout <= 0 {
		return nil, fmt.Errorf("--timeout is %s: use a duration above 0s", h.timeout)
	}
	text := h.url
	if strings.Contains(text, "@") {
		// It would be sent to whoever listens there: certificates are not verified.
		return nil, errors.New("--url has a user or a password: drop them, none is needed")
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	var wrong *url.Error
	switch {
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("--url is %q: %w", h.url, wrong.Err)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, fmt.Errorf("--url is %q: use http://HOST:PORT or https://HOST:PORT", h.url)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("--url is %q: drop everything from ? or # on", h.url)
	}
	if h.ready {
		return u.JoinPath("-", "ready"), nil
	}
	return u.JoinPath("-", "healthy"), nil
}

// ask asks until ctx is done, and again by TLS if the server speaks nothing else. It
// returns what to say of a good answer, and as an error what is wrong with any other.
func (h *healthcheck) ask(ctx context.Context, u *url.URL) (string, error) {
	a, err := get(ctx, u)
	if err == nil && u.Scheme == "http" && a.status == http.StatusBadRequest && a.line == tlsWanted {
		secure := *u
		secure.Scheme, u = "https", &secure
		a, err = get(ctx, u)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "", fmt.Errorf("%s: interrupted before it answered", u)
	case errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("%s: no answer within %s", u, h.timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "", fmt.Errorf("%s: %w; nothing listens there: the exporter has ended, or listens elsewhere (--url)", u, err)
	case err != nil:
		return "", fmt.Errorf("%s: %w", u, err)
	}
	said, err := a.judge(h.ready)
	if err != nil {
		return "", fmt.Errorf("%s: %w", u, err)
	}
	return fmt.Sprintf("%s: %s", u, said), nil
}

// answer is what a server answered.
type answer struct {
	// certificate is that it wants a client certificate, and answered nothing else.
	certificate bool
	status      int
	// line is the first line of the body, fit for a terminal.
	line string
}

// judge returns what to say of a good answer, and as an error what is wrong with any
// other.
func (a *answer) judge(ready bool) (string, error) {
	said := strings.TrimSpace(fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)))
	wants := ""
	switch {
	case a.certificate:
		said, wants = "TLS handshake refused", "it wants a client certificate"
	case a.status == http.StatusUnauthorized:
		wants = "it wants a password"
	case a.status == http.StatusTooManyRequests:
		wants = "it limits the rate of requests"
	}
	switch {
	case wants != "" && ready:
		return "", fmt.Errorf("%s: %s, so its readiness cannot be checked from here; drop --ready to check only that it is alive", said, wants)
	case wants != "":
		return fmt.Sprintf("%s: %s, so it is alive", said, wants), nil
	}
	said += ": " + cmp.Or(a.line, "(an empty line)")
	if a.status != http.StatusOK {
		return "", errors.New(said)
	}
	return said, nil
}

// get asks for u once. Errors are those of the network, of TLS, and of ctx.
func get(ctx context.Context, u *url.URL) (answer, error) {
	var wantsCertificate atomic.Bool // set by a goroutine of the transport
	client := http.Client{
		// What it leads to is not the exporter.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			// There is no Proxy: the exporter is asked, not what is between.
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: maxHealthHeader,
			TLSClientConfig: &tls.Config{
				// No secret is sent and nothing of the answer is relied on but that there
				// is one. To verify the certificate would ask for its name and its
				// authority, and would call an exporter dead whose certificate has expired.
				InsecureSkipVerify: true,
				MinVersion:         tls.VersionTLS10, // as low as the exporter can be configured
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					wantsCertificate.Store(true)
					return &tls.Certificate{}, nil // none
				},
			},
		},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return answer{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		if wantsCertificate.Load() && refused(err) {
			return answer{certificate: true}, nil
		}
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err // without the address, which the caller names
		}
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHealthBody))
	if err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	line, _, _ := strings.Cut(string(body), "\n")
	return answer{status: response.StatusCode, line: text.Clean(strings.TrimSpace(line))}, nil
}

// refused tells whether err is that of a server which broke off a handshake: by an
// alert, or, if the request was on its way by then, by a reset of the connection.
func refused(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "remote error" ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
