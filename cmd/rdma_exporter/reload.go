package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"rdma_exporter/internal/health"
)

// reloader loads the configuration file again while the exporter runs. Its methods are
// safe for concurrent use.
type reloader struct {
	// flags are the options as the command line has them, without the file.
	flags  options
	logger *slog.Logger
	// children and judge go by what was loaded, and judgement is what the latter does
	// beyond the file.
	children  *commands
	judge     *health.Judge
	judgement health.Config

	// loading is held while the file is read, which nobody else waits for.
	loading sync.Mutex

	mu sync.Mutex
	ok bool
	// loaded is when the configuration was loaded that holds.
	loaded time.Time
}

// last tells whether the file could be used when it was last loaded, and when it last
// could.
func (r *reloader) last() (ok bool, loaded time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ok, r.loaded
}

// reload loads the file, if there is one. One that cannot be used changes nothing.
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
	return err
}

func (r *reloader) load() error {
	o := r.flags
	if err := o.loadConfig(); err != nil {
		return err
	}
	if err := o.checkTime(); err != nil {
		return fmt.Errorf("--config.file %s: %w", o.configFile, err)
	}
	c := o.findings
	c.StaleAfter, c.Once, c.Now = r.judgement.StaleAfter, r.judgement.Once, r.judgement.Now
	r.children.tell(o.settings())
	r.judge.Configure(c)
	return nil
}

// onSignal reloads at each signal until ctx is done.
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
