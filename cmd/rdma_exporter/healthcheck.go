package main

import (
	"context"
	"fmt"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/healthcheck"
)

type healthFlags struct {
	url     string
	ready   bool
	timeout time.Duration
}

func (h *healthFlags) add(app *kingpin.Application) {
	c := app.Command(commandHealthcheck, "Ask a running exporter whether it is healthy, and exit: with status 1 if it is not.").
		HelpLong(`Asks a running exporter for /-/healthy, or with --ready for /-/ready, and prints the answer. The exit status is 0 if the exporter is healthy, 1 if it is not or does not answer, and 2 if the command line is wrong.

It needs no secret: an exporter that asks for a password or a client certificate is alive. Its readiness then remains unknown.`)
	c.Flag("url", "Where the exporter listens. http also works if it speaks TLS.").
		Default("http://127.0.0.1" + defaultAddress).StringVar(&h.url)
	c.Flag("ready", "Ask whether every device found at first has been probed.").BoolVar(&h.ready)
	c.Flag("timeout", "Time limit for the whole check.").Default("5s").DurationVar(&h.timeout)
}

func runHealthcheck(ctx context.Context, o *options, std stdio) int {
	h := &o.health
	// A password would be sent to any server, since certificates are not verified.
	target, err := healthcheck.Target(h.url, h.timeout, "drop them, none is needed")
	if err != nil {
		complain(std, fmt.Errorf("%w, try --help", err))
		return exitUsage
	}
	answer, err := healthcheck.Ask(ctx, target, h.ready, h.timeout)
	if err != nil {
		complain(std, err)
		return exitFailed
	}
	fmt.Fprintln(std.out, answer)
	return exitOK
}
