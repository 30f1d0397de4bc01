package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/api"
	"rdma_exporter/test/running"
)

// TestReadMaintenance verifies what a file in place of a maintenance file means, by when it was written.
func TestReadMaintenance(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	for _, tc := range []struct {
		name, text string
		written    time.Duration // Before now.
		want       string        // Empty if there is no maintenance.
		err        string
	}{
		{"a time", in(2*time.Hour) + "\n", 0, "Under maintenance until 2026-03-01 14:00:00 UTC.", ""},
		{"of another zone, without an end", "2026-03-01T15:00:00+02:00", 0, "Under maintenance until 2026-03-01 13:00:00 UTC.", ""},
		{"with a reason", in(time.Hour) + " new \x1b[2Jcables\nnobody reads on\n", 0, "Under maintenance until 2026-03-01 13:00:00 UTC (new �[2Jcables).", ""},
		{"expired", in(-time.Second) + " new cables\n", 0, "", ""},
		{"empty, as while it is written", "", 0, "", ""},
		{"7 days", in(7 * 24 * time.Hour), 0, "Under maintenance until 2026-03-08 12:00:00 UTC.", ""},
		{"the year is wrong", "2062-03-01T14:00:00Z", 0, "Under maintenance until 2026-03-08 12:00:00 UTC.", ""},
		{"the year is wrong, since 3 days", "2062-03-01T14:00:00Z", 72 * time.Hour, "Under maintenance until 2026-03-05 12:00:00 UTC.", ""},
		{"the year is wrong, since 7 days", "2062-03-01T14:00:00Z", 7 * 24 * time.Hour, "", ""},
		{"written in the future", "2062-03-01T14:00:00Z", -1000 * time.Hour, "", "was written in the future, at 2026-04-12T04:00:00Z: set the clock"},
		{"no time", "tomorrow, all day", 0, "", `begins with "tomorrow,": write a time such as`},
		{"no zone", "2026-03-01T14:00:00", 0, "", "write a time such as"},
		{"garbled", "\x00\xff\n" + in(time.Hour), 0, "", "write a time such as"},
		{"huge", strings.Repeat("x", 2<<20), 0, "", "more than 1 MiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := running.File(t, "maintenance", tc.text)
			running.Check(t, os.Chtimes(path, now, now.Add(-tc.written)))
			m, err := readMaintenance(path, now)
			got, failed := "", ""
			if m != nil {
				got = m.String()
			}
			if err != nil {
				failed = err.Error()
			}
			if strings.HasPrefix(tc.text, "2062-") && m != nil {
				tc.err = "later than 7 days"
			}
			if got != tc.want || !strings.Contains(failed, tc.err) || (failed == "") != (tc.err == "") {
				t.Errorf("got %q, %q", got, failed)
			}
		})
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	running.Check(t, unix.Mkfifo(fifo, 0o600))
	if m, err := readMaintenance(fifo, now); m != nil || err == nil || !strings.Contains(err.Error(), "named pipe") {
		t.Errorf("a named pipe: %v, %v", m, err)
	}
	if m, err := readMaintenance(filepath.Join(t.TempDir(), "absent"), now); m != nil || err != nil {
		t.Errorf("no file: %v, %v", m, err)
	}
}

// TestHostWatch verifies that each change has one line in the log, and that a file that does not answer is not read
// again and counts as no maintenance.
func TestHostWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log running.Output
		host := make(chan hostTimes)
		reads := 0
		w := &hostWatch{logger: slog.New(slog.NewTextHandler(&log, nil)), read: func() hostTimes {
			reads++
			return <-host
		}}
		ctx, cancel := context.WithCancel(t.Context())
		go w.run(ctx)
		booted, until := time.Unix(1e9, 0), time.Unix(2e9, 0).UTC()
		for _, step := range []struct {
			found hostTimes
			log   string // Empty if the log must say nothing.
		}{
			{hostTimes{booted: booted}, ""},
			{hostTimes{booted: booted, maintenance: &api.Maintenance{Until: until, Reason: "cables"}}, `INFO msg="Maintenance of host changed" maintenance="Under maintenance until 2033-05-18 03:33:20 UTC (cables)."`},
			{hostTimes{booted: booted, maintenance: &api.Maintenance{Until: until, Reason: "cables"}}, ""},
			{hostTimes{booted: booted, maintenance: &api.Maintenance{Until: until}, err: errCut}, `WARN msg="Maintenance file is wrong" maintenance="Under maintenance until`},
			{hostTimes{booted: booted, err: os.ErrPermission}, `WARN msg="Maintenance file is wrong" maintenance=<nil> err="permission denied"`},
			{hostTimes{booted: booted, err: os.ErrPermission}, ""},
			{hostTimes{booted: booted, maintenance: &api.Maintenance{Until: until}}, `INFO msg="Maintenance of host changed" maintenance="Under maintenance until`},
			{hostTimes{booted: booted}, `INFO msg="Maintenance of host changed" maintenance=<nil>`},
			{hostTimes{booted: booted, maintenance: &api.Maintenance{Until: until}}, `INFO msg="Maintenance of host changed" maintenance="Under maintenance until`},
		} {
			said := len(log.String())
			host <- step.found
			synctest.Wait()
			if got := log.String()[said:]; !strings.Contains(got, step.log) || (got == "") != (step.log == "") || strings.Count(got, "\n") > 1 {
				t.Errorf("%+v: the log says %q, want %q", step.found, got, step.log)
			}
			if got := w.times(); got != step.found {
				t.Errorf("got %+v, want %+v", got, step.found)
			}
			time.Sleep(hostInterval)
		}
		synctest.Wait()
		before, said := reads, len(log.String())
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := w.times(); got.maintenance != nil || got.booted != booted || reads != before || strings.Count(log.String()[said:], "\n") != 1 {
			t.Errorf("a file that does not answer: %+v, read %d times more, and the log says %q", got, reads-before, log.String())
		}
		cancel()
		close(host)
		synctest.Wait()
	})
}
