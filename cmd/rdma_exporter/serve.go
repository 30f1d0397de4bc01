package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"rdma_exporter/collector"
	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/internal/web"
)

// gcPercent is the growth of the heap at which it is collected, in per cent,
// unless the environment variable GOGC says otherwise.
const gcPercent = 30

// runServe is the command serve.
func runServe(ctx context.Context, o *options, std stdio) int {
	logger := promslog.New(o.log)
	e, err := newExporter(o, logger)
	if err != nil {
		fmt.Fprintf(std.err, "%s: error: %v\n", programName, err)
		return exitUsage
	}
	if os.Getenv("GOMAXPROCS") == "" {
		// One processor is more than enough, and a runtime with more of them wakes more
		// threads for the same work.
		runtime.GOMAXPROCS(1)
	}
	if os.Getenv("GOGC") == "" {
		// The exporter allocates in bursts, at scrapes: the host's memory is worth
		// more than the time of some collections.
		debug.SetGCPercent(gcPercent)
	}
	logger.Info("Starting "+programName, "version", version.Info())
	if err := e.run(ctx); err != nil {
		logger.Error("Ended", "err", err)
		return exitFailed
	}
	logger.Info("Ended")
	return exitOK
}

// exporter is the wired program: supervisor → collector → web.
type exporter struct {
	o          *options
	logger     *slog.Logger
	supervisor *supervisor.Supervisor
	web        web.Config
}

// newExporter checks everything that was configured and wires the rooms. It
// starts nothing.
func newExporter(o *options, logger *slog.Logger) (*exporter, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if file := *o.listen.WebConfigFile; file != "" {
		if err := toolkit.Validate(file); err != nil {
			return nil, fmt.Errorf("--web.config.file %s: %w", file, err)
		}
	}
	config, judgement, err := o.supervise()
	if err != nil {
		return nil, err
	}

	// The collector reads the supervisor, which is handed the collector.
	var s *supervisor.Supervisor
	judgement.StaleAfter = staleAfter(&config)
	judge := health.New(judgement, health.Past{})
	judged := func() *health.Host { return judge.Of(s.Snapshot()) }
	c := collector.New(collector.Options{Host: judged, Light: o.when == whenIdle})
	config.Sinks, config.Logger = []supervisor.Sink{c}, logger
	s, err = supervisor.New(config)
	if err != nil {
		return nil, err
	}

	registry := prometheus.NewRegistry()
	own := []prometheus.Collector{versioncollector.NewCollector(programName)}
	handlerMetrics := prometheus.Registerer(registry)
	if o.disableExporterMetrics {
		handlerMetrics = prometheus.NewRegistry() // which nobody gathers
	} else {
		own = append(own, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	for _, m := range own {
		if err := registry.Register(m); err != nil {
			return nil, fmt.Errorf("register the exporter's own metrics: %w", err)
		}
	}
	host, _ := os.Hostname() // The page does without.
	w := o.web
	w.Snapshot, w.Gatherer, w.Registerer, w.Logger = s.Snapshot, c.Gatherer(registry), handlerMetrics, logger
	w.Status = func(now time.Time) *api.Status {
		return api.Of(judged(), api.Options{Now: now, Version: version.Version, Host: host})
	}
	w, err = w.Validate()
	if err != nil {
		return nil, fmt.Errorf("--web.telemetry-path: %w", err) // the rest is not the user's
	}
	return &exporter{o: o, logger: logger, supervisor: s, web: w}, nil
}

// staleAfter returns how old the last run of each kind can become while all goes as
// it should, with time to spare.
func staleAfter(c *supervisor.Config) map[state.Kind]time.Duration {
	probes := 2*c.Backoff + c.Timeout + c.Contract.Timeout
	return map[state.Kind]time.Duration{
		state.KindProbe:     probes,
		state.KindContract:  2*c.Contract.Interval + probes,
		state.KindInventory: 2*max(c.Backoff, c.Inventory.Interval) + c.Inventory.Timeout,
	}
}

// run serves until ctx is cancelled or serving fails. When one of its two parts
// ends, so does the other.
func (e *exporter) run(ctx context.Context) error {
	handler, err := web.New(e.web)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var supervisorErr error
	wg.Go(func() {
		defer cancel()
		supervisorErr = e.supervisor.Run(ctx)
	})
	webErr := web.Serve(ctx, handler, e.o.listen, e.logger)
	cancel()
	wg.Wait()
	var network *net.OpError
	if errors.As(webErr, &network) && network.Op == "listen" {
		webErr = fmt.Errorf("%w; choose another address with --web.listen-address", webErr)
	}
	return errors.Join(webErr, supervisorErr)
}
