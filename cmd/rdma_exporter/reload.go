package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"sync"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/web"
)

// A reloader loads the configuration file, the simulated profile and the web configuration again.
// Its methods are safe for concurrent use.
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

	// loading is held while the files are read. Only other reloads wait for it.
	loading sync.Mutex

	mu sync.Mutex
	ok bool
	// loaded is the time of the last successful load.
	loaded time.Time
}

// last reports whether the last load succeeded, and when one last did.
func (r *reloader) last() (ok bool, loaded time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ok, r.loaded
}

// reload loads the files that there are. An invalid file changes nothing.
func (r *reloader) reload() error {
	r.loading.Lock()
	defer r.loading.Unlock()
	err := r.load()
	r.mu.Lock()
	r.ok = err == nil
	if r.ok {
		r.loaded = time.Now()
	}
	r.mu.Unlock()
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
