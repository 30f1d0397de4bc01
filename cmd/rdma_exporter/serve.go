package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"

	"rdma_exporter/collector"
	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/input"
	"rdma_exporter/internal/logqueue"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/path/answer"
	"rdma_exporter/internal/saved"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/internal/web"
)

const (
	// memoryLimit, in bytes, makes the exporter collect garbage more often when many scrapes come
	// at once.
	memoryLimit = 80 << 20
	// logTimeout limits how long the end waits until the log is written.
	logTimeout = time.Second
)

func runServe(ctx context.Context, o *options, std stdio) int {
	// The reader of the log may stall or go away. With Notify, a write to a closed pipe fails
	// instead of ending the process. If SIGPIPE were ignored, children would ignore it, too.
	closed := make(chan os.Signal, 1)
	signal.Notify(closed, syscall.SIGPIPE)
	defer signal.Stop(closed)
	lines := logqueue.New(std.err)
	defer lines.Close(logTimeout)
	std.err, o.log.Writer = lines, lines
	logger := promslog.New(o.log)
	// From the start, or the signal would end the process.
	reloads := make(chan os.Signal, 1)
	signal.Notify(reloads, syscall.SIGHUP)
	defer signal.Stop(reloads)
	e, err := input.UnlessDone(ctx, func() (*exporter, error) { return newExporter(ctx, o, logger, lines.Dropped) })
	switch {
	case ctx.Err() != nil:
		logger.Info("Stopped before it had started")
		return exitOK
	case errors.Is(err, syscall.EADDRINUSE):
		// Another process listens there: the command line is right.
		complain(std, err)
		return exitFailed
	case err != nil:
		complain(std, err)
		return exitUsage
	}
	if os.Getenv("GOMAXPROCS") == "" {
		// With more processors, the runtime wakes more threads for the same work.
		runtime.GOMAXPROCS(1)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	logger.Info("Starting "+programName, "version", version.Info())
	if err := e.run(ctx, reloads); err != nil {
		logger.Error("Ended", "err", err)
		return exitFailed
	}
	logger.Info("Ended")
	return exitOK
}

type exporter struct {
	logger     *slog.Logger
	supervisor *supervisor.Supervisor
	handler    http.Handler
	// webFile is nil without --web.config.file.
	webFile   *web.ConfigFile
	listeners []net.Listener
	reloader  *reloader
	// saver is nil without --state.dir.
	saver *saved.Saver
	host  *hostWatch
	// peers may be empty. responder gets requests only with --peer.respond.
	peers     *path.List
	responder *answer.Responder
	// pathListeners are those of path.listen.
	pathListeners []net.Listener
	evaluate      func()
}

// newExporter checks the configuration, wires the rooms, and listens. It starts nothing.
func newExporter(ctx context.Context, o *options, logger *slog.Logger, dropped func() uint64) (*exporter, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.retired.warn(func(flag, now string) { logger.Warn("Flag ignored", "flag", flag, "now", now) })
	webFile, err := web.OpenConfigFile(*o.listen.WebConfigFile)
	if err != nil {
		return nil, err
	}
	flags := *o
	config, children, err := o.supervise()
	if err != nil {
		return nil, err
	}
	findings := o.findings
	findings.StaleAfter, findings.Never, findings.Now = staleAfter(&config), never(&config), time.Now
	e := &exporter{logger: logger, webFile: webFile}
	e.host = &hostWatch{read: o.readHost, logger: logger}
	var past health.History
	if o.stateDir != "" {
		e.saver, past = saved.New(o.stateDir, logger)
	}
	config.Links = past.Links
	if e.peers, err = o.path.schedule(ctx, &config, logger); err != nil {
		return nil, err
	}
	config.Paths.Worked = past.Paths
	evaluator := health.New(findings, past)
	scheduleBandwidth(&config, evaluator)
	e.reloader = &reloader{
		flags: flags, logger: logger, webFile: webFile, children: children, evaluator: evaluator, findings: findings,
	}
	e.reloader.latest.Store(&loaded{true, time.Now()})

	// The collector reads the supervisor, which calls the collector.
	var s *supervisor.Supervisor
	evaluate := func() *health.Host { return evaluator.Evaluate(s.Snapshot()) }
	if e.saver != nil {
		e.saver.Current = func() health.History {
			evaluate()
			return evaluator.History()
		}
	}
	exposed := o.metrics(evaluate)
	exposed.Exporter = func() collector.Exporter { return e.self(dropped()) }
	exposed.Sessions = func() map[string]uint64 { return e.responder.Sessions() }
	exposed.Asked, exposed.Sizes = children.asked, children.sizes
	c := collector.New(exposed)
	config.Observers, config.Logger = []supervisor.Observer{c}, logger
	e.evaluate = func() { evaluate() }
	s, err = supervisor.New(config)
	if err != nil {
		return nil, err
	}
	e.reloader.probesChanged = s.ProbesChanged
	e.responder = o.path.responder(children, s.Snapshot, e.peers)

	registry := prometheus.NewRegistry()
	own := []prometheus.Collector{versioncollector.NewCollector(programName)}
	handlerMetrics := prometheus.Registerer(registry)
	if o.disableExporterMetrics {
		handlerMetrics = prometheus.NewRegistry() // It is never gathered.
	} else {
		runtimeMetrics := collectors.NewGoCollector(
			collectors.WithGoCollectorMemStatsMetricsDisabled(), collectors.WithoutGoCollectorRuntimeMetrics(regexp.MustCompile(`.*`)),
		)
		own = append(own, runtimeMetrics, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	for _, m := range own {
		if err := registry.Register(m); err != nil {
			return nil, fmt.Errorf("register the exporter's own metrics: %w", err)
		}
	}
	host, _ := os.Hostname() // The page does without.
	w := o.web
	w.Snapshot, w.Registerer, w.Logger = s.Snapshot, handlerMetrics, logger
	if w.Gatherer, err = withDevices(registry, c); err != nil {
		return nil, err
	}
	w.Only = func(collect, exclude []string) (prometheus.Gatherer, error) {
		chosen, err := c.Only(collect, exclude)
		if err != nil {
			return nil, err
		}
		return withDevices(registry, chosen)
	}
	w.Status = func(now time.Time) *api.Status {
		return api.New(evaluate(), api.Options{Now: now, Version: version.Version, Host: host, Maintenance: e.host.times().maintenance})
	}
	w.Verdict = func(o verdict.Options, now time.Time) verdict.Verdict { return verdict.Of(evaluate(), o, now) }
	if o.path.respond && o.path.config.Listen == "" {
		w.Paths = e.responder.Handler()
	}
	e.supervisor = s
	if e.handler, err = web.New(w); err != nil {
		return nil, fmt.Errorf("--web.telemetry-path: %w", err)
	}
	if e.listeners, err = web.Listen(ctx, o.listen); err != nil || !o.path.respond || o.path.config.Listen == "" {
		return e, err
	}
	api := *o.listen
	api.WebListenAddresses, api.WebSystemdSocket = &[]string{o.path.config.Listen}, nil
	if e.pathListeners, err = web.Listen(ctx, &api); err != nil {
		return nil, fmt.Errorf("path.listen: %w", err)
	}
	return e, nil
}

// withDevices gathers the exporter's own metrics and those of the devices. Unlike
// prometheus.Gatherers, one registry checks each series only once.
func withDevices(own, devices prometheus.Collector) (prometheus.Gatherer, error) {
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{own, devices} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics: %w", err)
		}
	}
	return registry, nil
}

func (e *exporter) self(dropped uint64) collector.Exporter {
	of := collector.Exporter{LogLinesDropped: dropped}
	latest := e.reloader.latest.Load()
	of.ConfigOK, of.ConfigLoaded = latest.ok, latest.at
	times := e.host.times()
	if of.Booted = times.booted; times.maintenance != nil {
		of.MaintenanceUntil = times.maintenance.Until
	}
	if e.saver != nil {
		of.StateWritable = e.saver.Writable.Load()
	}
	if e.webFile != nil {
		inForce := e.webFile.InForce()
		of.WebConfigInForce = &inForce
	}
	return of
}

// staleAfter returns how old the last run of each kind can become while nothing is wrong, with
// time to spare.
func staleAfter(c *supervisor.Config) map[state.Kind]time.Duration {
	probes := 2*c.Backoff + c.Timeout + c.Contract.Timeout
	return map[state.Kind]time.Duration{
		state.KindProbe:     probes,
		state.KindContract:  2*c.Contract.Interval + probes,
		state.KindInventory: 2*max(c.Backoff, c.Inventory.Interval) + c.Inventory.Timeout,
		state.KindAsk:       2 * c.Paths.Interval * (1 + supervisor.MaxPathSkips),
	}
}

// never returns the kinds of run that are switched off.
func never(c *supervisor.Config) (off []state.Kind) {
	for kind, interval := range map[state.Kind]time.Duration{
		state.KindContract: c.Contract.Interval, state.KindInventory: c.Inventory.Interval, state.KindHardware: c.Hardware.Interval,
		state.KindBandwidth: c.Bandwidth.Interval,
	} {
		if interval == 0 {
			off = append(off, kind)
		}
	}
	return off
}

// run serves until ctx is done or serving fails, and reloads the configuration at each signal.
func (e *exporter) run(ctx context.Context, reloads <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	var supervisorErr error
	running.Go(func() {
		defer cancel()
		supervisorErr = e.supervisor.Run(ctx)
	})
	running.Go(func() { evaluateChanges(ctx, e.supervisor.Changed(), e.evaluate) })
	running.Go(func() { reapOrphans(ctx) })
	running.Go(func() {
		<-ctx.Done()
		e.responder.Close()
	})
	var pathErr error
	if len(e.pathListeners) > 0 {
		running.Go(func() {
			defer cancel()
			pathErr = web.Serve(ctx, e.responder.Handler(), e.pathListeners, e.webFile, e.logger)
		})
	}
	// The end waits for none of these, since a file system may never answer.
	go e.peers.Run(ctx)
	go e.host.run(ctx)
	go e.reloader.onSignal(ctx, reloads)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if e.saver != nil {
			e.saver.Run(ctx)
		}
	}()
	webErr := web.Serve(ctx, e.handler, e.listeners, e.webFile, e.logger)
	cancel()
	running.Wait()
	select {
	case <-ended:
	case <-time.After(fileTime):
	}
	return errors.Join(webErr, pathErr, supervisorErr)
}

// evaluateChanges evaluates each change until ctx is done. A finding exists from the run that
// found it, although the next scrape may be far away. The supervisor never waits for it. The
// pause bounds what many changes of many devices cost, since each evaluation is of all.
func evaluateChanges(ctx context.Context, changed <-chan struct{}, evaluate func()) {
	const pause = 200 * time.Millisecond
	for {
		select {
		case <-changed:
			evaluate()
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}
