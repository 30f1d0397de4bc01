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
	// hostInterval is the time between two readings of the boot time and the maintenance file.
	hostInterval = 5 * time.Second
	// maxMaintenance limits a maintenance, from when its file was written. An error in the year must not
	// silence alerts for ever.
	maxMaintenance = 7 * 24 * time.Hour
)

// hostTimes are times of the host. Zero and nil mean unknown and none.
type hostTimes struct {
	booted      time.Time
	maintenance *api.Maintenance
	// cut is true if the maintenance ends earlier than its file says.
	cut bool
	err error
}

var errStalls = errors.New("the file system stalls")

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
		h.maintenance, h.cut, h.err = readMaintenance(o.maintenanceFile, time.Now())
	}
	return h
}

// readMaintenance returns nil if the file is missing or empty, or its time has passed.
func readMaintenance(path string, now time.Time) (m *api.Maintenance, cut bool, err error) {
	b, err := input.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	at, why, _ := strings.Cut(strings.TrimSpace(line), " ")
	if at == "" {
		return nil, false, nil
	}
	until, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return nil, false, fmt.Errorf("%s begins with %q: write a time such as 2026-01-31T12:00:00Z, and a reason after a space",
			path, text.Truncate(text.Clean(at), text.MaxName))
	}
	latest := info.ModTime()
	if latest.After(now) {
		latest = now
	}
	latest = latest.Add(maxMaintenance)
	if cut = until.After(latest); cut {
		until = latest
	}
	if !until.After(now) {
		return nil, false, nil
	}
	return &api.Maintenance{Until: until.UTC().Truncate(time.Second), Reason: text.Truncate(text.Clean(strings.TrimSpace(why)), text.MaxName)}, cut, nil
}

// A hostWatch reads the times of the host again and again.
type hostWatch struct {
	read   func() hostTimes
	logger *slog.Logger
	latest atomic.Pointer[hostTimes]
}

// run reads until ctx is done. A file that does not answer counts as no maintenance, and is not opened again until
// it does.
func (w *hostWatch) run(ctx context.Context) {
	for ctx.Err() == nil {
		read := make(chan hostTimes, 1)
		go func() { read <- w.read() }()
		stalled := time.After(fileTime)
		for waiting := true; waiting; {
			select {
			case h := <-read:
				w.set(h)
				waiting = false
			case <-stalled:
				w.set(hostTimes{booted: w.times().booted, err: errStalls})
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-time.After(hostInterval):
		case <-ctx.Done():
		}
	}
}

// times returns the latest reading. It never waits.
func (w *hostWatch) times() hostTimes {
	if h := w.latest.Load(); h != nil {
		return *h
	}
	return hostTimes{}
}

func (w *hostWatch) set(h hostTimes) {
	before := w.times()
	w.latest.Store(&h)
	switch {
	case fmt.Sprint(h.maintenance, h.err) == fmt.Sprint(before.maintenance, before.err):
	case h.err != nil:
		w.logger.Warn("Maintenance file ignored", "err", h.err)
	case h.maintenance == nil:
		w.logger.Info("Maintenance ended")
	case h.cut:
		w.logger.Warn("Host under maintenance, for 7 days at most", "until", h.maintenance.Until, "reason", h.maintenance.Reason)
	default:
		w.logger.Info("Host under maintenance", "until", h.maintenance.Until, "reason", h.maintenance.Reason)
	}
}
