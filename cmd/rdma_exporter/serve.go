package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"rdma_exporter/collector"
	"rdma_exporter/report"
	"rdma_exporter/supervisor"
	"rdma_exporter/web"
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
	if file := *o.web.WebConfigFile; file != "" {
		if err := toolkit.Validate(file); err != nil {
			return nil, fmt.Errorf("--web.config.file %s: %w", file, err)
		}
	}
	o.include, o.exclude = whole(o.include), whole(o.exclude)
	config, err := loadConfig(o.configFile)
	if err != nil {
		return nil, err
	}
	if config.Probe.DestroyTimeout >= o.timeout {
		return nil, fmt.Errorf("--probe.timeout %s leaves no time beside probe.destroy_timeout %s: make one longer or the other shorter", o.timeout, config.Probe.DestroyTimeout)
	}
	discover, profiles, err := discoverer(o)
	if err != nil {
		return nil, err
	}
	command, err := childCommand(settings{Provider: o.provider, Probe: config.Probe}, profiles)
	if err != nil {
		return nil, err
	}

	// The collector reads the supervisor, which is handed the collector.
	var s *supervisor.Supervisor
	c := collector.New(collector.Options{Snapshot: func() *report.Snapshot { return s.Snapshot() }})
	jitter := o.jitter
	if jitter == 0 {
		jitter = -1 // the supervisor's word for none
	}
	s, err = supervisor.New(supervisor.Config{
		Provider: o.provider, Discover: discover, Command: command,
		Interval: o.interval, Timeout: o.timeout, Discovery: min(o.discovery, o.interval),
		Backoff: max(o.backoff, o.interval), Concurrency: o.concurrency, Jitter: jitter,
		Sinks: []supervisor.Sink{c}, Logger: logger,
	})
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
	w, err := web.Config{
		Snapshot: s.Snapshot, Gatherer: c.Gatherer(registry), Registerer: handlerMetrics,
		Logger: logger, MetricsPath: o.metricsPath, MaxRequests: o.maxRequests, Version: version.Version,
	}.Validate()
	if err != nil {
		return nil, fmt.Errorf("--web.telemetry-path: %w", err) // the rest is not the user's
	}
	return &exporter{o: o, logger: logger, supervisor: s, web: w}, nil
}

// selfPath is the program that runs, even if its file was replaced meanwhile by
// one that may not understand this one's settings.
const selfPath = "/proc/self/exe"

// childCommand returns how to start the child for a device: this same program.
// If the device is simulated, its profile is added to the settings.
func childCommand(s settings, profiles map[string][]byte) (func(device string) supervisor.Command, error) {
	encode := func(profile []byte) ([]byte, error) {
		s := s
		s.Profile = profile
		stdin, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("encode the settings of the children: %w", err)
		}
		return stdin, nil
	}
	common, err := encode(nil)
	if err != nil {
		return nil, err
	}
	simulated := make(map[string][]byte, len(profiles))
	for device, profile := range profiles {
		if simulated[device], err = encode(profile); err != nil {
			return nil, err
		}
	}
	return func(device string) supervisor.Command {
		stdin, ok := simulated[device]
		if !ok {
			stdin = common
		}
		return supervisor.Command{Path: selfPath, Name: programName, Args: []string{commandProbe, "--device=" + device}, Stdin: stdin}
	}, nil
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
	webErr := web.Serve(ctx, handler, e.o.web, e.logger)
	cancel()
	wg.Wait()
	var network *net.OpError
	if errors.As(webErr, &network) && network.Op == "listen" {
		webErr = fmt.Errorf("%w; choose another address with --web.listen-address", webErr)
	}
	return errors.Join(webErr, supervisorErr)
}
