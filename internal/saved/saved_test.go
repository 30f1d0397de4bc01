package saved

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/input"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

func someHistory() health.History {
	at := time.Now().UTC().Round(0)
	return health.History{
		Findings:         map[health.FindingKey]health.Seen{{Device: "a \"<b>\"\n", Kind: health.FindingMemlock, Subject: "pid 4711 (träiner)"}: {First: at, Last: at}},
		Ports:            map[string][]int{"mlx5_0": {1, 2}},
		Links:            map[string]state.LinkHistory{"mlx5_0": {Links: []state.Link{{Port: 1, Active: true, Since: at, Ups: 1<<64 - 1, Recent: []time.Time{at}}}, PCI: "0000:3b:00.0"}},
		ContextHistories: map[string][]health.ContextHistory{"mlx5_0": {{Context: state.Context{Index: 1, ID: 5}, PID: 4711, Comm: "träiner", First: at, Last: at}}},
		Bandwidth:        map[string]*state.BandwidthState{"mlx5_0": {Tried: at, Result: state.BandwidthOK, Large: []state.BandwidthCell{{Port: 1, Best: 5e9}}}},
		GUIDs:            map[string]string{"mlx5_0": "0002:c903:0001:0001"},
		Exhausted:        map[string][]health.Exhausted{"mlx5_0": {{Type: "cq", Objects: 4012, At: at, Verb: "ibv_create_cq", Errno: "ENOMEM"}}},
	}
}

// TestSaver verifies that state is saved and read again, and that a failure is logged once.
func TestSaver(t *testing.T) {
	t.Parallel()
	dir, want := t.TempDir(), someHistory()
	var said bytes.Buffer
	s, h := New(dir, slog.New(slog.NewTextHandler(&said, nil)))
	if h.Findings != nil || said.Len() > 0 {
		t.Errorf("without a file: %v; said %s", h, &said)
	}
	s.Current = func() health.History { return want }
	s.save()
	if got, err := Read(dir); err != nil || !reflect.DeepEqual(got, want) || said.Len() > 0 {
		t.Errorf("got %v, %v; said %s", got, err, &said)
	}
	// A directory is in the way, which root cannot replace either.
	running.Check(t, os.Remove(s.path))
	running.Check(t, os.MkdirAll(filepath.Join(s.path, "x"), 0o700))
	want.Ports = nil
	s.save()
	s.save()
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
	if *s.Writable.Load() || strings.Count(said.String(), "Cannot save state") != 1 {
		t.Errorf("said %s", &said)
	}
	running.Check(t, os.RemoveAll(s.path))
	s.save()
	if got, err := Read(dir); err != nil || !*s.Writable.Load() || !strings.Contains(said.String(), "can be saved again") || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; said %s", got, err, &said)
	}
}

// TestStateOfTwo verifies that of two exporters on one folder, the second says so and saves nothing,
// and that the lock ends with the first.
func TestStateOfTwo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var said bytes.Buffer
	first, _ := New(dir, slog.New(slog.NewTextHandler(&said, nil)))
	first.Current = someHistory
	first.save()
	second, h := New(dir, first.logger)
	second.Current = func() health.History { return health.History{} }
	ended, end := context.WithCancel(t.Context())
	end() // It would save once more.
	second.Run(ended)
	if got, err := Read(dir); err != nil || got.Findings == nil || h.Findings != nil || *second.Writable.Load() || !strings.Contains(said.String(), "another exporter saves its state there") {
		t.Errorf("%v, %v, %v; said %s", got, err, h, &said)
	}
	running.Check(t, first.locked.Close())
	if _, h := New(dir, first.logger); h.Findings == nil {
		t.Errorf("said %s", &said)
	}
}

// TestStateStalls verifies that a file system that stalls holds up neither the start nor the
// end, and that nothing is saved: reading may still set the file aside.
func TestStateStalls(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), stateFile)
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		s := &Saver{path: path, logger: slog.New(slog.NewTextHandler(&said, nil)), Current: someHistory}
		stalled := make(chan health.History)
		if h := s.load(func() (health.History, error) { return <-stalled, nil }); h.Findings != nil {
			t.Error(h)
		}
		s.Run(t.Context())
		stalled <- someHistory()
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || *s.Writable.Load() || !strings.Contains(said.String(), "stalls") {
			t.Errorf("%v; said %s", err, &said)
		}
	})
}

func TestDamagedState(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"": "unexpected end", `{"version":1}{}`: "invalid character", `{"version":2}`: "it is version 2, not 1", strings.Repeat(" ", input.MaxFile+1): "more than 1 MiB",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, stateFile)
		running.Check(t, os.WriteFile(path, []byte(text), 0o600))
		var said bytes.Buffer
		New(dir, slog.New(slog.NewTextHandler(&said, nil)))
		if _, err := os.Stat(path + ".damaged"); err != nil || !strings.Contains(said.String(), "set aside") || !strings.Contains(said.String(), why) {
			t.Errorf("%v; said %s", err, &said)
		}
	}
}

// TestStateIsBounded verifies that of too much, the findings that were seen first stay.
func TestStateIsBounded(t *testing.T) {
	t.Parallel()
	h, at := someHistory(), time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for n := range 500 {
		h.Findings[health.FindingKey{Subject: fmt.Sprint(n, strings.Repeat("x", 4000))}] = health.Seen{First: at.Add(time.Duration(n)), Last: at.Add(time.Hour)}
	}
	b := running.Must(encodeState(h))(t)
	saved, err := decodeState(b)
	if err != nil || len(b) > input.MaxFile || len(saved.Findings) < 100 {
		t.Fatalf("%d bytes, %d findings, %v", len(b), len(saved.Findings), err)
	}
	for key, seen := range saved.Findings {
		if seen.First.After(at.Add(250)) {
			t.Errorf("%.10s is saved rather than older ones", key.Subject)
		}
	}
}

// TestForgetBefore verifies that contexts from before the host was started are left out.
func TestForgetBefore(t *testing.T) {
	t.Parallel()
	boot := time.Now()
	all := map[string][]health.ContextHistory{"a": {{PID: 1, First: boot.Add(1)}}, "b": {{PID: 2, First: boot.Add(-1)}}}
	forgetBefore(all, boot)
	if len(all["a"]) != 1 || len(all["b"]) != 0 {
		t.Error(all)
	}
}

// FuzzState verifies that a file is refused, or gives a state that can be saved again.
func FuzzState(f *testing.F) {
	b, err := encodeState(someHistory())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"version":1,"findings":[{"device":"a","first":"2026-01-01T00:00:00Z","last":"9999-12-31T23:59:59-01:00"}]}`))
	f.Add([]byte(`{"version":1,"links":{"a":{"links":[{"port":1,"recent":["9999-12-31T23:59:59-01:00"]}]},"b":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := decodeState(data)
		if err != nil {
			return
		}
		if again, err := encodeState(h); err != nil {
			t.Error(err)
		} else if _, err := decodeState(again); err != nil {
			t.Errorf("%v: %s", err, again)
		}
	})
}
