package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/input"
	"rdma_exporter/internal/text"
)

const (
	hostInterval = 5 * time.Second
	// fileTime limits how long the start waits for a file, and the end for the last save.
	fileTime = 5 * time.Second
	// maxMaintenance limits a maintenance, from when its file was written. An error in the year must not
	// silence alerts for ever.
	maxMaintenance = 7 * 24 * time.Hour
)

var (
	errStalls = errors.New("the file system stalls")
	errCut    = errors.New("its end is later than 7 days after the file was written, which is the limit")
)

// hostTimes are times of the host. Zero and nil mean unknown and none.
type hostTimes struct {
	booted      time.Time
	maintenance *api.Maintenance
	// err is what is wrong with the maintenance file.
	err error
}

// readHost reads the times of the host, which may take for ever.
func (o *options) readHost() (h hostTimes) {
	if b, err := input.ReadFile(filepath.Join(o.inventory.Procfs, "stat")); err == nil {
		_, after, _ := strings.Cut(string(b), "\nbtime ")
		seconds, _, _ := strings.Cut(after, "\n")
		if at, err := strconv.ParseInt(seconds, 10, 64); err == nil {
			h.booted = time.Unix(at, 0)
		}
	}
	if o.maintenanceFile != "" {
		h.maintenance, h.err = readMaintenance(o.maintenanceFile, time.Now())
	}
	return h
}

// readMaintenance returns nil if the file is missing or empty, or its time has passed.
func readMaintenance(path string, now time.Time) (*api.Maintenance, error) {
	b, err := input.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	info, failed := os.Stat(path)
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	at, why, _ := strings.Cut(strings.TrimSpace(line), " ")
	if at == "" {
		return nil, nil
	}
	until, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return nil, fmt.Errorf("%s begins with %q: write a time such as 2026-01-31T12:00:00Z, and a reason after a space", path, text.Name(at))
	}
	written := info.ModTime()
	if written.After(now) {
		return nil, fmt.Errorf("%s was written in the future, at %s: set the clock, and write it again", path, written.UTC().Format(time.RFC3339))
	}
	if latest := written.Add(maxMaintenance); until.After(latest) {
		until, err = latest, errCut
	}
	if !until.After(now) {
		return nil, nil
	}
	return &api.Maintenance{Until: until.UTC().Truncate(time.Second), Reason: text.Name(strings.TrimSpace(why))}, err
}

// A hostWatch reads the times of the host again and again.
type hostWatch struct {
	read   func() hostTimes
	logger *slog.Logger
	latest atomic.Value
}

// run reads until ctx is done. A file that does not answer counts as no maintenance, and is not opened again until
// it does, even after ctx is done.
func (w *hostWatch) run(ctx context.Context) {
	for ctx.Err() == nil {
		read := make(chan hostTimes, 1)
		go func() { read <- w.read() }()
		select {
		case h := <-read:
			w.set(h)
		case <-time.After(fileTime):
			w.set(hostTimes{booted: w.times().booted, err: errStalls})
			w.set(<-read)
		}
		select {
		case <-time.After(hostInterval):
		case <-ctx.Done():
		}
	}
}

// times returns the latest reading. It never waits.
func (w *hostWatch) times() hostTimes {
	h, _ := w.latest.Load().(hostTimes)
	return h
}

func (w *hostWatch) set(h hostTimes) {
	before := w.times()
	w.latest.Store(h)
	switch {
	case fmt.Sprint(h.maintenance, h.err) == fmt.Sprint(before.maintenance, before.err):
	case h.err != nil:
		w.logger.Warn("Maintenance file is wrong", "maintenance", h.maintenance, "err", h.err)
	default:
		w.logger.Info("Maintenance of host changed", "maintenance", h.maintenance)
	}
}
