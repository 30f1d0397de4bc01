package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/input"
	"rdma_exporter/internal/state"
)

func somePast() health.History {
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	return health.History{
		Findings: map[health.FindingKey]health.Seen{
			{Device: "mlx5_0", Kind: health.FindingPortDown, Subject: "port 1"}:                 {First: at.Add(-time.Hour), Last: at},
			{Device: "mlx5_1", Kind: health.FindingContract, Subject: "notify_any"}:             {First: at.Add(-2 * time.Hour), Last: at.Add(-time.Minute)},
			{Device: "a \"<b>\"\n", Kind: health.FindingMemlock, Subject: "pid 4711 (träiner)"}: {First: at, Last: at},
		},
		Ports: map[string][]int{"mlx5_0": {1, 2}},
		Links: map[string]state.LinkHistory{
			"mlx5_0": {
				Links: []state.Link{{Port: 1, Active: true, Since: at, Ups: 1<<64 - 1, Downs: 3, Recent: []time.Time{at.Add(-time.Second), at}, GIDChanges: 7}, {Port: 2}},
				PCI:   "0000:3b:00.0", BoardID: "MT_1",
			},
			"mlx5_1": {Links: []state.Link{{Port: 1}}, Away: at},
		},
		ContextHistories: map[string][]health.ContextHistory{"mlx5_0": {
			{Context: state.Context{Index: 1, ID: 5}, PID: 4711, Comm: "träiner", ContainerID: "c", PodUID: "p", First: at, Last: at},
			{Context: state.Context{Index: 1, ID: 6}, Run: "probe run, timeout", First: at, Last: at, Objects: []state.TypeCount{{Type: "cq", Objects: 2}}, LeftFirst: at, LeftLast: at},
		}},
		Exhausted: map[string][]health.Exhausted{
			"mlx5_0": {{Type: "cq", Objects: 4012, At: at, Verb: "ibv_create_cq", Errno: "ENOMEM", Firmware: "22.39.1002"}, {Type: "qp", Objects: 1, At: at, Verb: "ibv_create_qp", Errno: "EAGAIN"}},
		},
	}
}

func TestStateIsSaved(t *testing.T) {
	t.Parallel()
	want := somePast()
	b, err := encodeState(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeState(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, dir := range []string{t.TempDir(), "/no/such/directory"} {
		if past, err := readState(dir); err != nil || past.Findings != nil {
			t.Errorf("%s: %v, %v", dir, past, err)
		}
	}
}

// TestStateIsBounded verifies that of too much, the findings that were seen first stay.
func TestStateIsBounded(t *testing.T) {
	t.Parallel()
	past := somePast()
	past.Findings = make(map[health.FindingKey]health.Seen)
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for n := range health.MaxHistoryFindings {
		first := at.Add(time.Duration(n) * time.Second)
		past.Findings[health.FindingKey{Device: "a", Kind: health.FindingStuck, Subject: fmt.Sprint(n, strings.Repeat("x", 4000))}] = health.Seen{First: first, Last: first}
	}
	b, err := encodeState(past)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := decodeState(b)
	if err != nil || len(b) > input.MaxFile || len(saved.Findings) == 0 {
		t.Fatalf("%d bytes, %d findings, %v", len(b), len(saved.Findings), err)
	}
	for key, seen := range saved.Findings {
		if seen.First.After(at.Add(time.Hour)) {
			t.Errorf("%.10s is saved rather than older ones", key.Subject)
		}
	}
}

// TestStateSinceBoot verifies that contexts from before the host was started are left out.
func TestStateSinceBoot(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.March, 1, 12, 34, 56, 0, time.UTC)
	since := sinceBoot(map[string][]health.ContextHistory{"a": {{PID: 1, First: at}}, "b": {{PID: 2, First: at.Add(-time.Hour)}}}, at.Add(-time.Minute))
	if len(since["a"]) != 1 || len(since["b"]) != 0 {
		t.Errorf("since the host was started: %v", since)
	}
	if now := time.Now(); booted(now).IsZero() || !booted(now).Before(now) {
		t.Errorf("the host was started at %s", booted(now))
	}
}

// logged collects what is logged.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newLog() (*logged, *slog.Logger) {
	l := new(logged)
	return l, slog.New(slog.NewTextHandler(l, nil))
}

// saver returns a saver of a past in a directory, and its log.
func saver(dir string, past *health.History) (*stateSaver, *logged) {
	said, logger := newLog()
	s := newStateSaver(dir, logger)
	s.current = func() health.History { return *past }
	return s, said
}

// TestDamagedState verifies that a file that cannot be used is set aside with a message, and
// never waited for.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	write := func(text string) func(path string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	for name, tc := range map[string]struct {
		make func(path string) error
		says string
	}{
		"empty":     {write(""), "unexpected end"},
		"cut":       {write(`{"version":1,"find`), "unexpected end"},
		"no JSON":   {write("\x00\x00"), "invalid character"},
		"more":      {write(`{"version":1}{}`), "invalid character"},
		"other":     {write(`{"version":2}`), "it is version 2, not 1"},
		"no count":  {write(`{"version":1,"links":{"a":{"links":[{"port":1,"downs":-1}]}}}`), "cannot unmarshal"},
		"large":     {write(strings.Repeat(" ", input.MaxFile+1)), "more than 1 MiB"},
		"FIFO":      {func(path string) error { return unix.Mkfifo(path, 0o600) }, "named pipe"},
		"link":      {func(path string) error { return os.Symlink("/dev/zero", path) }, "device"},
		"directory": {func(path string) error { return os.Mkdir(path, 0o700) }, "directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, said := saver(t.TempDir(), nil)
			if err := tc.make(s.path()); err != nil {
				t.Fatal(err)
			}
			if past := s.load(t.Context()); len(past.Findings) > 0 {
				t.Errorf("got %v", past)
			}
			if !strings.Contains(said.String(), "set aside") || !strings.Contains(said.String(), tc.says) || strings.Count(said.String(), "\n") != 1 {
				t.Errorf("said %s", said)
			}
			if _, err := os.Lstat(s.path() + damagedSuffix); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLeftovers verifies that temporary files of killed writers are removed, and no others. The
// characters of the directory's name are no pattern.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s, said := saver(filepath.Join(root, "a[1]"), nil)
	other := filepath.Join(root, "a1", "."+stateFile+".1")
	old, fresh := filepath.Join(s.dir, "."+stateFile+".1"), filepath.Join(s.dir, "."+stateFile+".2")
	past := time.Now().Add(-2 * leftoverAge)
	for name, modified := range map[string]time.Time{other: past, old: past, fresh: time.Now()} {
		err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600), os.Chtimes(name, modified, modified))
		if err != nil {
			t.Fatal(err)
		}
	}
	s.load(t.Context())
	for name, want := range map[string]bool{other: true, old: false, fresh: true} {
		if _, err := os.Lstat(name); (err == nil) != want {
			t.Errorf("%s is there: %t, %v", name, !want, err)
		}
	}
	if said.String() != "" {
		t.Error(said)
	}
}

// TestStateStalls verifies that a load whose file system stalls disturbs no file that was
// written since: saving waits for its end.
func TestStateStalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		past := somePast()
		s, said := saver(dir, &past)
		if err := os.WriteFile(s.path(), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		stalled := make(chan struct{})
		s.read = func(dir string) (health.History, error) {
			p, err := readState(dir)
			<-stalled
			return p, err
		}
		if got := s.load(t.Context()); got.Findings != nil || !strings.Contains(said.String(), "takes too long") {
			t.Errorf("got %v; said %s", got, said)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.run(ctx)
		}()
		synctest.Wait() // What it would write now has been written.
		close(stalled)
		synctest.Wait()
		cancel()
		<-ended
		if got, err := os.ReadFile(s.path() + damagedSuffix); err != nil || string(got) != "{}" {
			t.Errorf("set aside is %s, %v", got, err)
		}
		if got, err := os.ReadFile(s.path()); err != nil || !bytes.Equal(got, s.saved) || len(got) == 0 {
			t.Errorf("saved is %s, %v", got, err)
		}
	})
}

// TestStateSaver verifies that changes are written, the last ones at the end, and that a
// failure is logged once.
func TestStateSaver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		past := somePast()
		s, said := saver(dir, nil)
		var current atomic.Pointer[health.History]
		current.Store(new(past))
		s.current = func() health.History { return *current.Load() }
		s.load(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.run(ctx)
		}()
		saved := func() health.History {
			t.Helper()
			b, err := os.ReadFile(s.path())
			if err != nil {
				t.Fatal(err)
			}
			got, err := decodeState(b)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		synctest.Wait()
		if got := saved(); !reflect.DeepEqual(got, past) {
			t.Errorf("saved at once is %v", got)
		}
		// A directory is in the way, which root cannot replace either.
		if err := os.Remove(s.path()); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(s.path(), "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		past = health.History{Findings: map[health.FindingKey]health.Seen{}, Ports: map[string][]int{"a": {1}}}
		current.Store(new(past))
		time.Sleep(5 * saveInterval / 2)
		if w := s.writable.Load(); *w || strings.Count(said.String(), "Cannot save state") != 1 {
			t.Errorf("writable %v; said %s", *w, said)
		}
		if err := os.RemoveAll(s.path()); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-ended
		if got := saved(); !reflect.DeepEqual(got, past) {
			t.Errorf("saved at the end is %v", got)
		}
		if w := s.writable.Load(); !*w || !strings.Contains(said.String(), "can be saved again") {
			t.Errorf("writable %v; said %s", *w, said)
		}
	})
}

// FuzzState verifies that a file is refused, or gives a state that can be saved again.
func FuzzState(f *testing.F) {
	b, err := encodeState(somePast())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	for _, s := range []string{
		"", "{}", `{"version":1}`, `{"version":1,"ports":{"a":[1,65537]}}`, "[]", "null", "\xff",
		`{"version":1,"findings":[{"device":"a","first":"2026-01-01T00:00:00Z","last":"9999-12-31T23:59:59-01:00"}]}`,
		`{"version":1,"links":{"a":{"links":[{"port":1,"recent":["9999-12-31T23:59:59-01:00"]}]},"b":null}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		past, err := decodeState(data)
		if err != nil {
			return
		}
		again, err := encodeState(past)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeState(again); err != nil {
			t.Errorf("%v: %s", err, again)
		}
	})
}

// The host is judged at each change though nobody asks, and no more once all is over.
func TestJudgeChanges(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	changed, judged, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		judgeChanges(ctx, changed, func() { judged <- struct{}{} })
	}()
	for range 2 {
		changed <- struct{}{}
		<-judged
	}
	cancel()
	<-ended
}
