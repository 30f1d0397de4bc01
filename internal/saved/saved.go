// Package saved keeps what the exporter remembers over a restart in a file of --state.dir.
package saved

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/input"
	"rdma_exporter/internal/state"
)

const (
	stateFile    = "past.json"
	stateVersion = 1
	saveInterval = time.Minute
	// fileTime limits how long the start waits for the file.
	fileTime = 5 * time.Second
	// fileMode is the mode of a file that another user usually reads.
	fileMode = 0o644
)

type savedState struct {
	Version   int                                `json:"version"`
	Findings  []savedFinding                     `json:"findings"`
	GUIDs     map[string]string                  `json:"node_guids,omitempty"`
	Ports     map[string][]int                   `json:"ports,omitempty"`
	Links     map[string]state.LinkHistory       `json:"links,omitempty"`
	Paths     map[string][]state.PathState       `json:"paths,omitempty"`
	Bandwidth map[string]*state.BandwidthState   `json:"bandwidth,omitempty"`
	Exhausted map[string][]health.Exhausted      `json:"exhausted,omitempty"`
	Witnesses map[string][]health.ContextHistory `json:"witnesses,omitempty"`
}

type savedFinding struct {
	Device  string      `json:"device"`
	Kind    health.Kind `json:"finding"`
	Subject string      `json:"subject"`
	First   time.Time   `json:"first"`
	Last    time.Time   `json:"last"`

	Severity health.Severity `json:"severity,omitempty"`
	Remedy   health.Remedy   `json:"remedy,omitempty"`
}

// encodeState returns the content of the file. If it would be too large to be read again, the
// findings that were seen first stay.
func encodeState(h health.History) ([]byte, error) {
	file := savedState{Version: stateVersion, Findings: []savedFinding{}, GUIDs: h.GUIDs, Ports: h.Ports, Links: h.Links, Paths: h.Paths, Bandwidth: h.Bandwidth, Exhausted: h.Exhausted, Witnesses: h.ContextHistories}
	for key, seen := range h.Findings {
		file.Findings = append(file.Findings, savedFinding{key.Device, key.Kind, key.Subject, seen.First, seen.Last, seen.Severity, seen.Remedy})
	}
	slices.SortFunc(file.Findings, func(a, b savedFinding) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject))
	})
	b, err := json.Marshal(file)
	for err == nil && len(b) > input.MaxFile {
		slices.SortStableFunc(file.Findings, func(a, b savedFinding) int { return a.First.Compare(b.First) })
		file = savedState{Version: stateVersion, Findings: file.Findings[:len(file.Findings)/2]}
		b, err = json.Marshal(file)
	}
	return b, err
}

func decodeState(b []byte) (health.History, error) {
	var file savedState
	if err := json.Unmarshal(b, &file); err != nil {
		return health.History{}, err
	}
	if file.Version != stateVersion {
		return health.History{}, fmt.Errorf("it is version %d, not %d", file.Version, stateVersion)
	}
	h := health.History{Findings: make(map[health.FindingKey]health.Seen), GUIDs: file.GUIDs, Ports: file.Ports, Links: file.Links, Paths: file.Paths, Bandwidth: file.Bandwidth, Exhausted: file.Exhausted, ContextHistories: file.Witnesses}
	for _, f := range file.Findings {
		if !f.First.IsZero() && !f.Last.Before(f.First) {
			h.Findings[health.FindingKey{Device: f.Device, Kind: f.Kind, Subject: f.Subject}] = health.Seen{First: f.First, Last: f.Last, Severity: f.Severity, Remedy: f.Remedy}
		}
	}
	return h, nil
}

var errDamaged = errors.New("damaged")

// Read returns the saved state of a folder. Without a file it is empty. It may block on the file system.
func Read(dir string) (h health.History, err error) {
	b, err := input.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	} else if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		return h, err
	}
	if err == nil {
		h, err = decodeState(b)
	}
	if err != nil {
		return health.History{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	// Since the host was started, the kernel numbers contexts from the beginning.
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil {
		forgetBefore(h.ContextHistories, time.Now().Add(-time.Duration(info.Uptime)*time.Second))
	}
	return h, nil
}

func forgetBefore(all map[string][]health.ContextHistory, boot time.Time) {
	for device, list := range all {
		all[device] = slices.DeleteFunc(list, func(c health.ContextHistory) bool { return c.First.Before(boot) && c.LeftFirst.Before(boot) })
	}
}

// A Saver saves what is remembered over a restart.
type Saver struct {
	// Current returns what is to be saved. Callers must set it before Run.
	Current func() health.History
	// Writable is true if the last save succeeded. Nil means unknown. Only the Saver may change it.
	Writable atomic.Pointer[bool]

	path   string
	logger *slog.Logger
	// saved is the content of the file. Nil means unknown.
	saved []byte
	// off is true if this exporter must not save.
	off bool
	// locked is the folder, whose lock this exporter has as long as it is open. Nil means that its
	// file system locks no folders.
	locked *os.File
}

// New also returns the saved state of a folder. It waits some seconds at most. If the file is damaged, it is set aside.
func New(dir string, logger *slog.Logger) (*Saver, health.History) {
	s := &Saver{path: filepath.Join(dir, stateFile), logger: logger}
	return s, s.load(s.restore)
}

// load returns the saved state. It is empty, and this exporter never saves, if another exporter uses
// the folder, or if the file system stalls: restore may still set the file aside later.
func (s *Saver) load(restore func() (health.History, error)) health.History {
	ctx, cancel := context.WithTimeoutCause(context.Background(), fileTime, errors.New("the file system stalls"))
	defer cancel()
	h, err := input.UnlessDone(ctx, restore)
	if s.off = err != nil; s.off {
		s.Writable.Store(new(false))
		s.logger.Warn("Cannot read saved state", "file", s.path, "err", fmt.Errorf("%w: nothing is saved until a restart", cmp.Or(context.Cause(ctx), err)))
	}
	return h
}

// restore returns an error only if another exporter uses the folder.
func (s *Saver) restore() (health.History, error) {
	dir := filepath.Dir(s.path)
	if d, err := os.Open(dir); err == nil { // If not, reading the file says why.
		if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			s.locked = d
		} else if _ = d.Close(); errors.Is(err, unix.EWOULDBLOCK) {
			return health.History{}, errors.New("another exporter saves its state there: give each one a --state.dir of its own")
		}
	}
	h, err := Read(dir)
	if errors.Is(err, errDamaged) {
		aside := s.path + ".damaged"
		s.logger.Warn("Saved state cannot be used, and is set aside", "file", aside, "err", err)
		if err := os.Rename(s.path, aside); err != nil {
			s.logger.Warn("Cannot set saved state aside", "file", s.path, "err", err)
		}
	} else if err != nil {
		s.logger.Warn("Cannot read saved state", "file", s.path, "err", err)
	}
	return h, nil
}

// Run saves at once, at intervals if anything has changed, and when ctx is done. It may block on the file system.
func (s *Saver) Run(ctx context.Context) {
	if s.off {
		return
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

func (s *Saver) save() {
	b, err := encodeState(s.Current())
	if err == nil {
		if bytes.Equal(b, s.saved) {
			return
		}
		err = s.write(b)
	}
	if s.saved = b; err != nil {
		s.saved = nil
	}
	before, writable := s.Writable.Swap(new(err == nil)), err == nil
	switch {
	case !writable && (before == nil || *before):
		s.logger.Error("Cannot save state", "file", s.path, "err", err)
	case writable && before != nil && !*before:
		s.logger.Info("State can be saved again", "file", s.path)
	}
}

// write always uses the same temporary file, so that a writer that was killed leaves one at most.
func (s *Saver) write(b []byte) error {
	f, err := os.OpenFile(s.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, fileMode)
	if err != nil {
		return err
	}
	return Replace(f, s.path, b)
}

// Replace replaces a file or a symbolic link in one step. A reader sees either the old or the new text,
// even after a power cut. It writes to f, a new file in the same directory, which it closes. After an
// error, it removes f, and the old file is unchanged.
func Replace(f *os.File, path string, text []byte) (err error) {
	defer func() {
		if err != nil {
			_ = f.Close() // It may be closed already.
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Chmod(fileMode); err != nil { // whatever the umask is
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
