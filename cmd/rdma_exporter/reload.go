package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/web"
)

// A reloader loads the configuration file, the simulated profile and the web configuration again.
// One goroutine at a time may reload.
type reloader struct {
	// flags are the options without the file.
	flags  options
	logger *slog.Logger
	// webFile is nil without --web.config.file.
	webFile   *web.ConfigFile
	children  *commands
	evaluator *health.Evaluator
	// findings has StaleAfter, Never, Once and Now, which are not in the file.
	findings health.Config
	// probesChanged is called when the configuration of the probes has changed.
	probesChanged func()

	latest atomic.Pointer[loaded]
}

// loaded is whether the last load succeeded, and when one last did.
type loaded struct {
	ok bool
	at time.Time
}

// reload loads the files that there are. An invalid file changes nothing.
func (r *reloader) reload() error {
	err := r.load()
	if err == nil {
		r.latest.Store(&loaded{true, time.Now()})
	} else {
		r.latest.Store(&loaded{false, r.latest.Load().at})
	}
	return errors.Join(err, r.webFile.Reload())
}

func (r *reloader) load() error {
	o := r.flags
	if err := o.loadConfig(); err != nil {
		return err
	}
	if err := o.checkTime(); err != nil {
		return fmt.Errorf("--config.file %s: %w", o.configFile, err)
	}
	profile, err := loadProfile(&o)
	if err != nil {
		return err
	}
	s := o.settings()
	s.parsed = profile
	c := o.findings
	c.StaleAfter, c.Never, c.Once, c.Now = r.findings.StaleAfter, r.findings.Never, r.findings.Once, r.findings.Now
	if before := r.children.settings.Swap(&s); !reflect.DeepEqual(before.Probe, s.Probe) {
		r.probesChanged()
	}
	r.evaluator.Configure(c)
	return nil
}

func (r *reloader) onSignal(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			if err := r.reload(); err != nil {
				r.logger.Error("Cannot reload the configuration: the previous one stays in force", "err", err)
			} else {
				r.logger.Info("Configuration reloaded")
			}
		}
	}
}
