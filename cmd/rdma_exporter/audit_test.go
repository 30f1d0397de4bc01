package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/test/running"
)

func TestQuotedList(t *testing.T) {
	t.Parallel()
	if got := quotedList([]string{"a", "b\x1b"}); got != `"a", "b\x1b"` {
		t.Error(got)
	}
	if got := quotedList(slices.Repeat([]string{"a"}, 33)); !strings.HasSuffix(got, `"a", and 13 more`) {
		t.Error(got)
	}
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries := running.Must(os.ReadDir(folder))(t)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a*b.prom") // A star has no meaning in it.
	for _, text := range []string{"one", "", strings.Repeat("two", 1<<20)} {
		running.Check(t, replace(path, []byte(text)))
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%v: %.10q", err, got)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
			t.Errorf("%v: %v", err, info)
		}
		if got := names(t, dir); !slices.Equal(got, []string{"a*b.prom"}) {
			t.Errorf("the folder has %q", got)
		}
	}
}

// What cannot be replaced stays, and nothing else is left.
func TestReplaceFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	full := filepath.Join(dir, "folder")
	running.Check(t, os.MkdirAll(filepath.Join(full, "file"), 0o755))
	for path, want := range map[string]error{
		full:                               syscall.EEXIST, // as it is of a directory
		filepath.Join(dir, "none", "file"): fs.ErrNotExist,
		filepath.Join(dir, strings.Repeat("x", 255)):            syscall.ENAMETOOLONG,
		filepath.Join(full, "file", strings.Repeat("x/", 4096)): syscall.ENAMETOOLONG,
	} {
		if err := replace(path, []byte("text")); !errors.Is(err, want) {
			t.Errorf("%.100s: %v, want %v", path, err, want)
		}
	}
	if got := names(t, dir); !slices.Equal(got, []string{"folder"}) {
		t.Errorf("the folder has %q", got)
	}
	if got := names(t, full); !slices.Equal(got, []string{"file"}) {
		t.Errorf("the folder in it has %q", got)
	}
}

// A stalledWriter blocks until it is closed.
type stalledWriter chan struct{}

func (u stalledWriter) Write([]byte) (int, error) {
	<-u
	return 0, io.ErrClosedPipe
}

// TestWithinStalled verifies that a stalled reader of the report or the messages does not prolong an audit.
func TestWithinStalled(t *testing.T) {
	t.Parallel()
	profile := filepath.Join(t.TempDir(), "profile.yaml")
	running.Check(t, os.WriteFile(profile, []byte("devices: []\n"), 0o600))
	for name, streams := range map[string]func(stalledWriter) stdio{
		"report":  func(u stalledWriter) stdio { return stdio{out: u, err: io.Discard} },
		"message": func(u stalledWriter) stdio { return stdio{out: io.Discard, err: u} },
		"both":    func(u stalledWriter) stdio { return stdio{out: u, err: u} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const within = 2 * time.Second
				u, began := make(stalledWriter), time.Now()
				status := run(t.Context(), []string{commandAudit, "--provider=simulated", "--simulated.profile=" + profile, "--within=" + within.String()}, streams(u))
				if took := time.Since(began); status != exitNoAudit || took > within+lastWords+2*lastWord {
					t.Errorf("status %d after %v", status, took)
				}
				close(u)
			})
		})
	}
}
