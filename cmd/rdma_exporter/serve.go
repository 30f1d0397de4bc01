package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
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
	"rdma_exporter/internal/logqueue"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/internal/web"
)

// gcPercent is the growth of the heap at which it is collected, in per cent,
// unless the environment variable GOGC says otherwise.
const gcPercent = 50

// logTimeout is how long the end of the log may take to be read at the end.
const logTimeout = time.Second

// runServe is the command serve.
func runServe(ctx context.Context, o *options, std stdio) int {
	// Whoever reads the log may stall or go away, and nobody here is to wait for them. A
	// signal that is notified of makes a write to a closed pipe fail, where it would else
	// end the process; an ignored one would be ignored by children, too.
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
	e, err := unlessDone(ctx, func() (*exporter, error) { return newExporter(ctx, o, logger, lines.Dropped) })
	switch {
	case ctx.Err() != nil:
		logger.Info("Stopped before it had started")
		return exitOK
	case errors.Is(err, syscall.EADDRINUSE):
		// It is somebody else's end that mends it, not another command line.
		complain(std, err)
		return exitFailed
	case err != nil:
		complain(std, err)
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
	if err := e.run(ctx, reloads); err != nil {
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
	webFile    *web.ConfigFile
	// dropped returns how many lines of the log were lost.
	dropped   func() uint64
	listeners []net.Listener
	reloader  *reloader
	// judge judges the host as it is now, if that is not done yet, and changed has a value
	// when it is another than when that was last asked.
	judge   func()
	changed chan struct{}
	// saver is nil if nothing is saved over a restart.
	saver *stateSaver
}

// newExporter checks everything that was configured, wires the rooms, and listens. It
// starts nothing.
func newExporter(ctx context.Context, o *options, logger *slog.Logger, dropped func() uint64) (*exporter, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.retired.warn(func(flag, now string) { logger.Warn("Flag ignored", "flag", flag, "now", now) })
	webFile, err := web.OpenConfigFile(*o.listen.WebConfigFile)
	if err != nil {
		return nil, err
	}
	reload := &reloader{flags: *o, logger: logger, webFile: webFile, ok: true, loaded: time.Now()}
	config, children, err := o.supervise()
	if err != nil {
		return nil, err
	}

	// The collector reads the supervisor, which is handed the collector.
	var s *supervisor.Supervisor
	judgement := o.findings
	judgement.StaleAfter, judgement.Now = staleAfter(&config), time.Now
	var past health.History
	var saver *stateSaver
	if o.stateDir != "" {
		saver, past = newStateSaver(o.stateDir, logger)
	}
	config.Links = past.Links
	judge := health.New(judgement, past)
	judged := func() *health.Host { return judge.Evaluate(s.Snapshot()) }
	reload.children, reload.judge, reload.judgement = children, judge, judgement
	e := &exporter{o: o, logger: logger, reloader: reload, webFile: webFile, saver: saver, dropped: dropped, judge: func() { judged() }, changed: make(chan struct{}, 1)}
	if e.saver != nil {
		e.saver.current = func() health.History {
			judged() // Nobody else may have asked.
			return judge.History()
		}
	}
	exposed := o.metrics(judged)
	exposed.Exporter, exposed.Asked, exposed.Sizes = e.self, children.asked, children.sizes
	c := collector.New(exposed)
	config.Observers, config.Logger = []supervisor.Observer{c}, logger
	config.Changed = func() {
		select {
		case e.changed <- struct{}{}:
		default:
		}
	}
	s, err = supervisor.New(config)
	if err != nil {
		return nil, err
	}
	reload.probesChanged = s.ProbesChanged

	registry := prometheus.NewRegistry()
	own := []prometheus.Collector{versioncollector.NewCollector(programName)}
	handlerMetrics := prometheus.Registerer(registry)
	if o.disableExporterMetrics {
		handlerMetrics = prometheus.NewRegistry() // which nobody gathers
	} else {
		// What the runtime tells beyond this is for those who work on it.
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
		return api.New(judged(), api.Options{Now: now, Version: version.Version, Host: host})
	}
	w, err = w.Validate()
	if err != nil {
		return nil, fmt.Errorf("--web.telemetry-path: %w", err) // the rest is not the user's
	}
	// What cannot be listened at is found before anything is begun.
	listeners, err := web.Listen(ctx, o.listen)
	if err != nil {
		return nil, err
	}
	e.supervisor, e.web, e.listeners = s, w, listeners
	return e, nil
}

// withDevices returns a Gatherer of the exporter's own metrics and those of the devices.
// One registry for both checks each series once, where prometheus.Gatherers would do so twice.
func withDevices(own, devices prometheus.Collector) (prometheus.Gatherer, error) {
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{own, devices} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics: %w", err)
		}
	}
	return registry, nil
}

// self returns what the exporter knows of itself.
func (e *exporter) self() collector.Exporter {
	var of collector.Exporter
	of.ConfigOK, of.ConfigLoaded = e.reloader.last()
	if e.saver != nil {
		of.StateWritable = e.saver.writable.Load()
	}
	of.LogLinesDropped = e.dropped()
	if e.webFile != nil {
		inForce := e.webFile.InForce()
		of.WebConfigInForce = &inForce
	}
	return of
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

// run serves until ctx is cancelled or serving fails, and reloads the configuration file
// at each signal. When one of its two parts ends, so does the other.
func (e *exporter) run(ctx context.Context, reloads <-chan os.Signal) error {
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
	wg.Go(func() { judgeChanges(ctx, e.changed, e.judge) })
	// The end waits for neither of these two: a file system may never answer.
	go e.reloader.onSignal(ctx, reloads)
	saved := make(chan struct{})
	go func() {
		defer close(saved)
		if e.saver != nil {
			e.saver.run(ctx)
		}
	}()
	webErr := web.Serve(ctx, handler, e.listeners, e.webFile, e.logger)
	cancel()
	wg.Wait()
	select {
	case <-saved:
	case <-time.After(fileTime):
	}
	return errors.Join(webErr, supervisorErr)
}

// judgeChanges has the host judged at once when something has changed, until ctx is done:
// a finding exists from when it is first found, and no scrape may come soon.
func judgeChanges(ctx context.Context, changed <-chan struct{}, judge func()) {
	for {
		select {
		case <-changed:
			judge()
		case <-ctx.Done():
			return
		}
	}
}
