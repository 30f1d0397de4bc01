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

// reloader loads the configuration file and the simulated profile again while the exporter runs.
// Its methods are safe for concurrent use.
type reloader struct {
	// flags are the options as the command line has them, without the file.
	flags  options
	logger *slog.Logger
	// webFile is nil without --web.config.file.
	webFile *web.ConfigFile
	// children and judge go by what was loaded, and judgement is what the latter does
	// beyond the file.
	children  *commands
	judge     *health.Evaluator
	judgement health.Config
	// probesChanged is called when the configuration of the probes is another one.
	probesChanged func()

	// loading is held while the files are read. Only other reloads wait for it.
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

// reload loads the configuration file and the web configuration, if there are any. A file
// that is invalid changes nothing.
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
	if err := r.children.simulate(profile); err != nil {
		return err
	}
	c := o.findings
	c.StaleAfter, c.Once, c.Now = r.judgement.StaleAfter, r.judgement.Once, r.judgement.Now
	before := r.children.settings.Load().Probe
	r.children.tell(o.settings())
	if !reflect.DeepEqual(before, o.probe) {
		r.probesChanged()
	}
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
