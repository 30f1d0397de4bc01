package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/healthcheck"
	"rdma_exporter/internal/verdict"
)

type verdictFlags struct {
	url, httpConfig string
	probe           bool
	timeout         time.Duration
	query           url.Values
}

// probeTimeout limits a verdict without an exporter.
const probeTimeout = 30 * time.Second

func (v *verdictFlags) add(app *kingpin.Application) {
	v.query = make(url.Values)
	c := app.Command(commandVerdict, "Ask a running exporter whether this host is fit for jobs, and exit: with status 1 if it is not.").
		HelpLong(`Asks a running exporter for its verdict and prints it: one line of at most 80 characters, for Slurm, node-problem-detector and scripts. It opens no device. The exit status is 0 if the host is fit for jobs, 1 if a finding counts or there is no device, and 2 if nothing could be judged, or if the command line is wrong. See docs/audit.md.

Most of the flags below are those of the command audit. They are used with --probe, if no exporter answers.`)
	c.Flag("url", "Where the exporter listens.").Default("http://127.0.0.1" + defaultAddress).StringVar(&v.url)
	c.Flag("http.config.file", "YAML file with the CA, client certificate, password or token for the exporter, as http_config of Prometheus. Certificates are verified.").
		PlaceHolder("FILE").StringVar(&v.httpConfig)
	c.Flag("timeout", "Time limit for the answer of the exporter.").Default("3s").DurationVar(&v.timeout)
	c.Flag("probe", "If no exporter answers, audit the devices as audit --quick does. Nothing is remembered then, so --for and --clear-after do not apply.").
		BoolVar(&v.probe)
	for _, f := range []struct{ name, placeholder, help string }{
		{"for", "2m", "How long a finding must have existed to count."},
		{"clear-after", "5m", "How long the verdict stays bad after the last finding that counted; 10m at most."},
		{"fail-on", "critical", "Least severe finding that counts: warning or critical."},
		{"accept", "FINDING", "Accept a finding, so that it does not count: a kind of finding, and after a slash its subject. May be repeated."},
		{"expect-devices", "N", "Devices that must be there. With 0, a host without any is fit. Default: at least one."},
		{"expect-active-ports", "N", "Ports that must be active, over all devices."},
	} {
		c.Flag(f.name, f.help).PlaceHolder(f.placeholder).SetValue(parameter{v.query, strings.ReplaceAll(f.name, "-", "_")})
	}
}

// parameter is the value of a flag that is a parameter of the request.
type parameter struct {
	query url.Values
	key   string
}

// Set implements kingpin.Value.
func (p parameter) Set(s string) error {
	p.query.Add(p.key, s)
	_, err := verdict.Parse(url.Values{p.key: {s}})
	return err
}

// String implements kingpin.Value.
func (p parameter) String() string { return "" }

// IsCumulative reports whether the flag may be repeated.
func (p parameter) IsCumulative() bool { return p.key == "accept" }

func runVerdict(ctx context.Context, o *options, std stdio) int {
	v := &o.verdict
	target, err := healthcheck.Target(v.url, v.timeout, "put them into --http.config.file")
	client, wrong := healthcheck.Client("--http.config.file", v.httpConfig)
	if err := errors.Join(err, wrong); err != nil {
		complain(std, fmt.Errorf("%w, try --help", err))
		return exitUsage
	}
	found, err := healthcheck.Verdict(ctx, client, target, v.query, v.timeout)
	if v.probe && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, context.DeadlineExceeded)) {
		found, err = v.audit(ctx, o, std), nil
	}
	if err != nil {
		complain(std, err)
	}
	if _, err := fmt.Fprintln(std.out, found.Line); err != nil {
		return verdict.Unknown
	}
	return found.Status
}

// audit returns the verdict of a quick audit, and says on standard error why it is missing.
func (v *verdictFlags) audit(ctx context.Context, o *options, std stdio) verdict.Verdict {
	found := verdict.Verdict{Status: verdict.Unknown, Line: verdict.Line(verdict.KindNoAudit, "", "neither exporter nor audit answers", health.RemedyExporter)}
	options, _ := verdict.Parse(v.query) // It was checked before.
	options.For, options.ClearAfter, o.quick, o.schedule.Within = 0, 0, true, probeTimeout
	o.judge = func(h *health.Host) { found = verdict.Of(h, options, time.Now()) }
	runAudit(ctx, o, std)
	return found
}
