package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/input"
	"rdma_exporter/internal/state"
)

const (
	// stateFile is the file of --state.dir. damagedSuffix is added to its name if it cannot
	// be used.
	stateFile     = "past.json"
	damagedSuffix = ".damaged"
	stateVersion  = 1

	// saveInterval is the time between two saves.
	saveInterval = time.Minute
	// fileTime limits how long start and end wait for the file system.
	fileTime = 5 * time.Second
	// leftoverAge is the age from which a temporary file has no writer any longer.
	leftoverAge = time.Hour
)

type savedState struct {
	Version   int                                `json:"version"`
	Findings  []savedFinding                     `json:"findings"`
	Ports     map[string][]int                   `json:"ports,omitempty"`
	Links     map[string]state.LinkHistory       `json:"links,omitempty"`
	Exhausted map[string][]health.Exhausted      `json:"exhausted,omitempty"`
	Witnesses map[string][]health.ContextHistory `json:"witnesses,omitempty"`
}

type savedFinding struct {
	Device  string      `json:"device"`
	Kind    health.Kind `json:"finding"`
	Subject string      `json:"subject"`
	First   time.Time   `json:"first"`
	Last    time.Time   `json:"last"`
}

// encodeState returns the content of the file, which must be readable again. If it would be
// too large, the findings that were seen first stay longest.
func encodeState(p health.History) ([]byte, error) {
	file := savedState{Version: stateVersion, Findings: []savedFinding{}, Ports: p.Ports, Links: p.Links, Exhausted: p.Exhausted, Witnesses: p.ContextHistories}
	for _, key := range p.Sorted() {
		seen := p.Findings[key]
		file.Findings = append(file.Findings, savedFinding{key.Device, key.Kind, key.Subject, seen.First, seen.Last})
	}
	for {
		b, err := json.Marshal(file)
		if err != nil || len(b) <= input.MaxFile {
			return b, err
		}
		switch {
		case file.Witnesses != nil:
			file.Witnesses = nil
		case file.Exhausted != nil:
			file.Exhausted = nil
		case file.Links != nil:
			file.Links = nil
		case file.Ports != nil:
			file.Ports = nil
		default:
			slices.SortStableFunc(file.Findings, func(a, b savedFinding) int { return a.First.Compare(b.First) })
			file.Findings = file.Findings[:len(file.Findings)/2]
		}
	}
}

// decodeState returns the saved state. Finding times that contradict each other are left out.
func decodeState(b []byte) (health.History, error) {
	var file savedState
	if err := json.Unmarshal(b, &file); err != nil {
		return health.History{}, err
	}
	if file.Version != stateVersion {
		return health.History{}, fmt.Errorf("it is version %d, not %d", file.Version, stateVersion)
	}
	past := health.History{Findings: make(map[health.FindingKey]health.Seen), Ports: file.Ports, Links: file.Links, Exhausted: file.Exhausted, ContextHistories: file.Witnesses}
	for _, f := range file.Findings {
		if !f.First.IsZero() && !f.Last.Before(f.First) {
			past.Findings[health.FindingKey{Device: f.Device, Kind: f.Kind, Subject: f.Subject}] = health.Seen{First: f.First, Last: f.Last}
		}
	}
	return past, nil
}

var errDamaged = errors.New("damaged")

// readState reads the saved state. Without a file it is empty.
func readState(dir string) (health.History, error) {
	b, err := input.ReadFile(filepath.Join(dir, stateFile))
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return health.History{}, nil
	case errors.As(err, &failed):
		return health.History{}, err
	}
	var past health.History
	if err == nil {
		past, err = decodeState(b)
	}
	if err != nil {
		return health.History{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	past.ContextHistories = sinceBoot(past.ContextHistories, booted(time.Now()))
	return past, nil
}

// sinceBoot returns the device contexts that were seen since the host was started. The kernel
// numbers them from the beginning then.
func sinceBoot(all map[string][]health.ContextHistory, boot time.Time) map[string][]health.ContextHistory {
	since := make(map[string][]health.ContextHistory)
	for device, list := range all {
		since[device] = slices.DeleteFunc(slices.Clone(list), func(w health.ContextHistory) bool { return w.First.Before(boot) && w.LeftFirst.Before(boot) })
	}
	return since
}

// booted returns when the host was started. Zero means unknown.
func booted(now time.Time) time.Time {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return time.Time{}
	}
	return now.Add(-time.Duration(info.Uptime) * time.Second)
}

// A stateSaver loads what is remembered over a restart, and saves it. No scrape and no run
// waits for its file system.
//
// Loading may set the file aside. If the file system stalls, that happens late, so saving
// waits until loading has ended, however long that takes.
type stateSaver struct {
	dir    string
	logger *slog.Logger
	// current returns what is to be saved.
	current func() health.History
	// read is readState. Tests let it stall.
	read func(dir string) (health.History, error)

	// idle is closed when loading has ended.
	idle chan struct{}
	// saved is what is in the file. Nil means unknown.
	saved []byte
	// writable is true if the last save succeeded.
	writable atomic.Pointer[bool]
}

func newStateSaver(dir string, logger *slog.Logger) *stateSaver {
	return &stateSaver{dir: dir, logger: logger, read: readState, idle: make(chan struct{})}
}

// load returns the saved state, which is empty if it cannot be read in time. It comes before
// run.
func (s *stateSaver) load(ctx context.Context) health.History {
	loaded := make(chan health.History, 1)
	go func() { // It ends by itself, and run waits for it.
		defer close(s.idle)
		loaded <- s.restore()
	}()
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	select {
	case past := <-loaded:
		return past
	case <-ctx.Done():
		s.logger.Warn("Cannot read saved state", "file", s.path(), "err", "it takes too long")
		return health.History{}
	}
}

func (s *stateSaver) path() string { return filepath.Join(s.dir, stateFile) }

// restore reads the file, sets it aside if it is damaged, and removes what writers left that
// were killed long ago.
func (s *stateSaver) restore() health.History {
	past, err := s.read(s.dir)
	switch {
	case errors.Is(err, errDamaged):
		s.logger.Warn("Saved state cannot be used, and is set aside", "file", s.path()+damagedSuffix, "err", err)
		if err := os.Rename(s.path(), s.path()+damagedSuffix); err != nil {
			s.logger.Warn("Cannot set saved state aside", "file", s.path(), "err", err)
		}
	case err != nil:
		s.logger.Warn("Cannot read saved state", "file", s.path(), "err", err)
	}
	entries, _ := os.ReadDir(s.dir) // Without the directory there is nothing to remove.
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "."+stateFile+".") {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > leftoverAge {
			_ = os.Remove(filepath.Join(s.dir, entry.Name())) // It does no harm.
		}
	}
	return past
}

// run saves at once, at intervals if anything has changed, and when ctx is done.
func (s *stateSaver) run(ctx context.Context) {
	select {
	case <-s.idle:
	case <-ctx.Done():
		return // The file system stalls.
	}
	tick := time.NewTicker(saveInterval)
	defer tick.Stop()
	for {
		s.save()
		select {
		case <-ctx.Done():
			s.save()
			return
		case <-tick.C:
		}
	}
}

// save writes the file if its content has changed.
func (s *stateSaver) save() {
	b, err := encodeState(s.current())
	if err == nil {
		if bytes.Equal(b, s.saved) {
			return
		}
		err = replace(s.path(), b)
	}
	if s.saved = b; err != nil {
		s.saved = nil
	}
	before, writable := s.writable.Load(), err == nil
	s.writable.Store(&writable)
	switch {
	case !writable && (before == nil || *before):
		s.logger.Error("Cannot save state", "file", s.path(), "err", err)
	case writable && before != nil && !*before:
		s.logger.Info("State can be saved again", "file", s.path())
	}
}
