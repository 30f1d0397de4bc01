package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

func somePast() health.Past {
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	return health.Past{
		Findings: map[health.FindingKey]health.Seen{
			{Device: "mlx5_0", Kind: health.FindingPortDown, Subject: "port 1"}:                 {First: at.Add(-time.Hour), Last: at},
			{Device: "mlx5_1", Kind: health.FindingContract, Subject: "notify_any"}:             {First: at.Add(-2 * time.Hour), Last: at.Add(-time.Minute)},
			{Device: "a \"<b>\"\n", Kind: health.FindingMemlock, Subject: "pid 4711 (träiner)"}: {First: at, Last: at},
		},
		Ports: map[string][]int{"mlx5_0": {1, 2}},
		Links: map[string]state.LinkPast{
			"mlx5_0": {
				Links: []state.Link{{Port: 1, Active: true, Since: at, Ups: 1<<64 - 1, Downs: 3, Recent: []time.Time{at.Add(-time.Second), at}, GIDChanges: 7}, {Port: 2}},
				PCI:   "0000:3b:00.0", BoardID: "MT_1",
			},
			"mlx5_1": {Links: []state.Link{{Port: 1}}, Away: at},
		},
		Witnesses: map[string][]health.Witness{"mlx5_0": {
			{Context: state.Context{Index: 1, ID: 5}, PID: 4711, Comm: "träiner", ContainerID: "c", PodUID: "p", First: at, Last: at},
			{Context: state.Context{Index: 1, ID: 6}, Run: "probe run, timeout", First: at, Last: at, Objects: []state.TypeCount{{Type: "cq", Objects: 2}}, LeftFirst: at, LeftLast: at},
		}},
		Exhausted: map[string][]health.Exhausted{
			"mlx5_0": {{Type: "cq", Objects: 4012, At: at, Verb: "ibv_create_cq", Errno: "ENOMEM", Firmware: "22.39.1002"}, {Type: "qp", Objects: 1, At: at, Verb: "ibv_create_qp", Errno: "EAGAIN"}},
		},
	}
}

// encoded returns a past as it is kept.
func encoded(t *testing.T, p health.Past) string {
	t.Helper()
	b, err := encodePast(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPastIsKept(t *testing.T) {
	t.Parallel()
	want := somePast()
	if got, err := decodePast([]byte(encoded(t, want))); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	dir := t.TempDir()
	if past, err := readPast(dir); err != nil || past.Findings != nil {
		t.Errorf("an empty folder: %v, %v", past, err)
	}
	if past, err := readPast(filepath.Join(dir, "none")); err != nil || past.Findings != nil {
		t.Errorf("no folder: %v, %v", past, err)
	}
}

// TestPastIsBounded: of too much, what was seen first is kept.
func TestPastIsBounded(t *testing.T) {
	t.Parallel()
	past := health.Past{Findings: make(map[health.FindingKey]health.Seen)}
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for n := range health.MaxPastFindings {
		first := at.Add(time.Duration(n) * time.Second)
		past.Findings[health.FindingKey{Device: "a", Kind: health.FindingStuck, Subject: fmt.Sprint(n, strings.Repeat("x", 4000))}] = health.Seen{First: first, Last: first}
	}
	b := encoded(t, past)
	kept, err := decodePast([]byte(b))
	if err != nil || len(b) > maxPastBytes || len(kept.Findings) == 0 {
		t.Fatalf("%d bytes, %d findings, %v", len(b), len(kept.Findings), err)
	}
	for key, seen := range kept.Findings {
		if seen.First.After(at.Add(time.Hour)) {
			t.Errorf("%.10s is kept rather than older ones", key.Subject)
		}
	}
}

// TestPastOfManyLinks: of too many, those are kept of devices that are there, then those that
// are away for the shortest time, and of these the ports that changed; and the file stays
// within its bound.
func TestPastOfManyLinks(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.March, 1, 12, 0, 0, 999, time.FixedZone("", 3600))
	past := health.Past{Links: make(map[string]state.LinkPast)}
	const there = 200 // of which all ports are kept, before those that changed of others
	for n := range maxPastLinks {
		p := state.LinkPast{Links: []state.Link{{Port: 1, Active: true}, {Port: 2, Downs: 1, Since: at, Recent: slices.Repeat([]time.Time{at}, state.MaxRecent)}}}
		if n >= there {
			p.Away = at.Add(-time.Duration(n) * time.Hour)
		}
		past.Links[fmt.Sprint("d", n)] = p
	}
	b := encoded(t, past)
	kept, err := decodePast([]byte(b))
	if err != nil || len(b) > maxPastBytes {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	const away = (maxPastLinks - 2*there) / 2
	for n := range maxPastLinks {
		want := 2
		if n >= there+away {
			want = 0
		}
		p := kept.Links[fmt.Sprint("d", n)]
		if len(p.Links) != want || want > 0 && (p.Links[0].Port != 2 || !p.Links[0].Since.Equal(at.Truncate(time.Second)) || p.Away.IsZero() != (n < there)) {
			t.Errorf("d%d: %+v", n, p)
		}
	}
}

// TestPastOfManyExhausted: what does not hold any more is not kept, nor more than may be.
func TestPastOfManyExhausted(t *testing.T) {
	t.Parallel()
	past := health.Past{Exhausted: make(map[string][]health.Exhausted)}
	for n := range maxPastExhausted {
		past.Exhausted[fmt.Sprint("d", n)] = []health.Exhausted{{Type: "cq"}, {Type: "mr", Objects: 1}, {Type: "qp", Objects: 2}}
	}
	b := encoded(t, past)
	kept, err := decodePast([]byte(b))
	if err != nil || len(b) > maxPastBytes || len(kept.Exhausted) != maxPastExhausted/2 {
		t.Fatalf("%d bytes, %d devices, %v", len(b), len(kept.Exhausted), err)
	}
	for device, all := range kept.Exhausted {
		if len(all) != 2 {
			t.Errorf("%s: %v", device, all)
		}
	}
}

// TestPastOfWitnesses: who has what is kept to the hour, so that the file does not change all
// the time, and what was before the host was started is of no use.
func TestPastOfWitnesses(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.March, 1, 12, 34, 56, 0, time.UTC)
	past := health.Past{Witnesses: map[string][]health.Witness{
		"a": {{PID: 1, First: at, Last: at.Add(10 * time.Minute)}}, "b": {{PID: 2, First: at.Add(-time.Hour), Last: at.Add(10 * time.Minute)}},
	}}
	before := encoded(t, past)
	past.Witnesses["a"][0].Last, past.Witnesses["b"][0].Last = at.Add(20*time.Minute), at.Add(20*time.Minute)
	if after := encoded(t, past); after != before {
		t.Errorf("%s became %s", before, after)
	}
	since := sinceBoot(past.Witnesses, at.Add(-time.Minute))
	if len(since) != 1 || len(since["a"]) != 1 {
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

// TestDamaged: what cannot be used is set aside with a message, and is never waited for.
func TestDamaged(t *testing.T) {
	t.Parallel()
	write := func(text string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	good := encoded(t, somePast())
	var many []string
	for range health.MaxPastFindings + 1 {
		many = append(many, `{"device":"a","finding":"stuck","subject":"x","first":"2026-01-01T00:00:00Z","last":"2026-01-01T00:00:00Z"}`)
	}
	var manyLinks []string
	for n := range maxPastLinks + 1 {
		manyLinks = append(manyLinks, fmt.Sprintf(`"%d":{"links":[{"port":1}]}`, n))
	}
	for name, tc := range map[string]struct {
		make func(t *testing.T, path string)
		says string
	}{
		"empty":             {write(""), "EOF"},
		"cut":               {write(good[:len(good)/2]), "unexpected EOF"},
		"no JSON":           {write("\x00\x00\x00\x00"), "invalid character"},
		"more":              {write(good + "{}"), "there is more after its end"},
		"other":             {write(`{"version":2}`), "it is version 2, not 1"},
		"unknown key":       {write(`{"version":1,"a":1}`), "unknown field"},
		"no time":           {write(`{"version":1,"findings":[{"device":"a"}]}`), "finding 0 makes no sense"},
		"backwards":         {write(`{"version":1,"findings":[{"device":"a","first":"2026-01-02T00:00:00Z","last":"2026-01-01T00:00:00Z"}]}`), "finding 0 makes no sense"},
		"no port":           {write(`{"version":1,"ports":{"a":[-1]}}`), "make no sense"},
		"port 0":            {write(`{"version":1,"links":{"a":{"links":[{"port":0}]}}}`), "make no sense"},
		"less than no rate": {write(`{"version":1,"links":{"a":{"links":[{"port":1,"max_rate_bits_per_second":-1}]}}}`), "make no sense"},
		"port twice":        {write(`{"version":1,"links":{"a":{"links":[{"port":1},{"port":1}]}}}`), "make no sense"},
		"many times":        {write(`{"version":1,"links":{"a":{"links":[{"port":1,"recent":["2026-01-01T00:00:00Z"` + strings.Repeat(`,"2026-01-01T00:00:00Z"`, state.MaxRecent) + `]}]}}}`), "make no sense"},
		"untracked":         {write(`{"version":1,"exhausted":{"a":[{"type":"ah","objects":1}]}}`), "make no sense"},
		"exhausted at 0":    {write(`{"version":1,"exhausted":{"a":[{"type":"qp"}]}}`), "make no sense"},
		"exhausted twice":   {write(`{"version":1,"exhausted":{"a":[{"type":"qp","objects":1},{"type":"qp","objects":1}]}}`), "make no sense"},
		"no time of it":     {write(`{"version":1,"exhausted":{"a":[{"type":"qp","objects":1,"at":"9999-12-31T23:59:59-01:00"}]}}`), "make no sense"},
		"nobody":            {write(`{"version":1,"witnesses":{"a":[{"context":{"index":1,"id":1},"pid":-1}]}}`), "make no sense"},
		"left of no type":   {write(`{"version":1,"witnesses":{"a":[{"context":{"index":1,"id":1},"objects":[{"type":"ah","objects":1}]}]}}`), "make no sense"},
		"many witnesses":    {write(`{"version":1,"witnesses":{"a":[{"context":{"index":1,"id":1}}` + strings.Repeat(`,{"context":{"index":1,"id":1}}`, health.MaxWitnesses) + `]}}`), "was opened by 65"},
		"many links":        {write(`{"version":1,"links":{` + strings.Join(manyLinks, ",") + `}}`), "it has 513 links"},
		"no count":          {write(`{"version":1,"links":{"a":{"links":[{"port":1,"downs":-1}]}}}`), "cannot unmarshal"},
		"many":              {write(`{"version":1,"findings":[` + strings.Join(many, ",") + `]}`), "it has 4097 findings"},
		"large":             {write(good + strings.Repeat(" ", maxPastBytes)), "it is larger than"},
		"FIFO": {func(t *testing.T, path string) {
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		"link": {func(t *testing.T, path string) {
			if err := os.Symlink("/dev/zero", path); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		"folder": {func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, pastFile)
			tc.make(t, path)
			said, logger := newLog()
			if past := restorePast(t.Context(), dir, logger); len(past.Findings) > 0 {
				t.Errorf("got %v", past)
			}
			if !strings.Contains(said.String(), "set aside") || !strings.Contains(said.String(), tc.says) || strings.Count(said.String(), "\n") != 1 {
				t.Errorf("said %s", said)
			}
			if _, err := os.Lstat(path + damagedSuffix); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(path); err == nil {
				t.Error("it is still there")
			}
		})
	}
}

// TestRestoreTidies: what an interrupted write left is removed, and nothing else.
func TestRestoreTidies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"." + pastFile + ".123", "other", pastFile} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(encoded(t, somePast())), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said, logger := newLog()
	want := somePast()
	want.Witnesses = make(map[string][]health.Witness) // The host was started since.
	if past := restorePast(t.Context(), dir, logger); !reflect.DeepEqual(past, want) || said.String() != "" {
		t.Errorf("got %v; said %s", past, said)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestKeeper: what is remembered is written at once, when it has changed and at the end;
// what cannot be written is told once.
func TestKeeper(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, pastFile)
	said, logger := newLog()
	past := somePast()
	k := &keeper{dir: dir, past: func() health.Past { return past }, every: time.Hour, logger: logger}
	k.keep()
	if got, err := readPast(dir); err != nil || !reflect.DeepEqual(got, past) {
		t.Fatalf("kept is %v, %v", got, err)
	}
	inode := func() uint64 {
		var s unix.Stat_t
		if err := unix.Stat(path, &s); err != nil {
			t.Fatal(err)
		}
		return s.Ino
	}
	first := inode()
	// Time goes on, and nothing else.
	later := somePast()
	for key, seen := range later.Findings {
		if seen.Last.Equal(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)) {
			seen.Last = seen.Last.Add(time.Minute)
			later.Findings[key] = seen
		}
	}
	past = later
	if k.keep(); inode() != first {
		t.Error("it was written though nothing has changed but the time")
	}
	past = health.Past{Ports: map[string][]int{"a": {1}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.run(ctx)
	if got, err := readPast(dir); err != nil || len(got.Findings) != 0 || !reflect.DeepEqual(got.Ports, past.Ports) {
		t.Errorf("kept at the end is %v, %v", got, err)
	}
	if w := k.writable.Load(); w == nil || !*w || said.String() != "" {
		t.Errorf("writable %v; said %s", w, said)
	}

	// A folder is in the way, which root cannot replace either.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	past = somePast()
	k.keep()
	k.keep()
	if w := k.writable.Load(); *w || strings.Count(said.String(), "Cannot write the kept state") != 1 {
		t.Errorf("writable %v; said %s", *w, said)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	k.keep()
	if w := k.writable.Load(); !*w || !strings.Contains(said.String(), "can be written again") {
		t.Errorf("writable %v; said %s", *w, said)
	}
}

// FuzzPast makes sure that a file is refused, or a past that can be kept again.
func FuzzPast(f *testing.F) {
	b, err := encodePast(somePast())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	for _, s := range []string{
		"", "{}", `{"version":1}`, `{"version":1,"findings":null,"ports":{"":[]}}`, `{"version":1,"ports":{"a":[1,65537]}}`, `{"version":1}}`, "[]", "null", "\xff",
		`{"version":1,"findings":[{"device":"\ud800","finding":"","subject":"","first":"0001-01-01T00:00:00Z","last":"9999-12-31T23:59:59Z"}]}`,
		`{"version":1,"findings":[{"device":"a","first":"2026-01-01T00:00:00Z","last":"9999-12-31T23:59:59-01:00"}]}`,
		`{"version":1,"links":{"a":[{"port":1,"since":"0000-01-01T00:00:00+01:00"}],"b":null,"":[{"port":65536,"ups":18446744073709551615}]}}`,
		`{"version":1,"links":{"a":{"links":[{"port":1,"recent":["9999-12-31T23:59:59-01:00"]}]}}`,
		`{"version":1,"exhausted":{"":[{"type":"qp","objects":9223372036854775807,"at":"0000-01-01T00:00:00Z","verb":"\ud800"}],"b":null}}`,
		`{"version":1,"findings":[{"device":"a","first":"2026-01-01T00:00:00.000000001+23:59","last":"2026-01-02T00:00:00-12:00"}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		past, err := decodePast(data)
		if err != nil {
			return
		}
		again, err := encodePast(past)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodePast(again); err != nil {
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
