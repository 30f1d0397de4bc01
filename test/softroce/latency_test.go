//go:build vm

package softroce

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/ibverbs"
)

// What is compared with the yardstick. Both sides use the same: the sizes below
// stand in test/yardstick/yardstick.c too.
const (
	latencyRounds   = 12
	latencySamples  = 1000
	latencyWarmup   = 100
	latencyDeadline = time.Second

	message = 8
	entries = 16
	depth   = 8
)

// yardstickFile is the program that our latencies are held against.
func yardstickFile(t testing.TB) string {
	t.Helper()
	file := os.Getenv("RDMA_YARDSTICK")
	if !filepath.IsAbs(file) {
		t.Fatalf("RDMA_YARDSTICK is %q: set it to the absolute path of test/yardstick, built (make bench does)", file)
	}
	return file
}

// byYardstick has the yardstick take one round of a loop, and returns the median.
func byYardstick(t testing.TB, file, loop string) time.Duration {
	t.Helper()
	args := []string{
		"-d", active, "-n", strconv.Itoa(latencySamples), "-w", strconv.Itoa(latencyWarmup),
		"-t", strconv.FormatInt(latencyDeadline.Milliseconds(), 10), loop,
	}
	out, err := exec.Command(file, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("yardstick %q: %v\n%s%s", args, err, out, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Samples, Missed, Spurious, Missing, Unsuccessful int
		Median                                           time.Duration
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("yardstick %q: %v in %q", args, err, out)
	}
	if found.Samples != latencySamples || found.Missed+found.Spurious+found.Missing+found.Unsuccessful > 0 {
		t.Errorf("yardstick %q: %s", args, out)
	}
	return found.Median
}

// byUs takes one round of a loop, and returns the median.
func byUs(t testing.TB, loop string) (median time.Duration) {
	t.Helper()
	var failed error
	o := session.Options{
		Provider: func(verbs.Tracer) verbs.Provider { return ibverbs.New(nil) },
		Device:   active, Out: wire.NewWriter(io.Discard),
	}
	err := session.Run(t.Context(), o, func(_ context.Context, s *session.Session) error {
		scope := s.Scope()
		m, err := measurement(s, scope, loop)
		var found verbs.Samples
		if err == nil {
			found, err = s.Device.Measure(m)
		}
		failed = errors.Join(err, scope.Close())
		if len(found.Latency) != latencySamples || found.Missed+found.Spurious+found.Misdirected+found.Missing > 0 {
			t.Errorf("Measure %s: %d samples, %d missed, %d spurious, %d misdirected, %d missing",
				loop, len(found.Latency), found.Missed, found.Spurious, found.Misdirected, found.Missing)
		}
		median = middle(found.Latency)
		return nil
	})
	if err := errors.Join(err, failed); err != nil {
		t.Fatalf("%s: %v", loop, err)
	}
	return median
}

// middle sorts the values and returns the lower one of the middle, or zero if there are none.
func middle[T cmp.Ordered](values []T) (middle T) {
	slices.Sort(values)
	if n := len(values); n > 0 {
		middle = values[(n-1)/2]
	}
	return middle
}

// measurement creates the objects that the yardstick creates for a loop, with the same sizes.
func measurement(s *session.Session, scope *session.Scope, loop string) (m verbs.Measurement, err error) {
	path, mode, _ := strings.Cut(loop, "_")
	m = verbs.Measurement{Warmup: latencyWarmup, Samples: latencySamples, Deadline: latencyDeadline, Budget: time.Minute}
	pd, err := s.PD()
	if err != nil {
		return m, err
	}
	mr, err := scope.MR(pd, 4096, verbs.AccessLocalWrite)
	if err != nil {
		return m, err
	}
	if mode == "any" {
		if m.Channel, err = scope.CompChannel(); err != nil {
			return m, err
		}
	}
	if m.CQ, err = scope.CQ(verbs.CQInitAttr{Entries: entries, Channel: m.Channel}); err != nil {
		return m, err
	}
	other, err := scope.CQ(verbs.CQInitAttr{Entries: entries})
	if err != nil {
		return m, err
	}
	data := []verbs.SGE{mr.SGE(0, message)}
	if path == "flush" {
		f, err := scope.Flushing(session.FlushInit, m.CQ, other, data, depth)
		m.Sender, m.Send, m.Status = f.QP, f.Send, verbs.WCWRFlushErr
		return m, err
	}
	m.Other, m.Status = other, verbs.WCSuccess
	m.Send = verbs.SendWR{Flags: verbs.SendSignaled, SGEs: data}
	m.Recv = verbs.RecvWR{SGEs: []verbs.SGE{mr.SGE(64, message)}}
	attr := verbs.QPInitAttr{
		Type: verbs.RC, SendCQ: other, RecvCQ: m.CQ,
		Cap: verbs.QPCap{MaxSendWR: depth, MaxRecvWR: depth, MaxSendSGE: 1, MaxRecvSGE: 1},
	}
	if m.Receiver, err = scope.QP(pd, attr); err != nil {
		return m, err
	}
	attr.RecvCQ = other
	if m.Sender, err = scope.QP(pd, attr); err != nil {
		return m, err
	}
	routes, err := s.Routes(1)
	if err != nil {
		return m, err
	}
	return m, session.Connect(m.Sender, m.Receiver, routes[0])
}

// BenchmarkLatency compares our latencies with those of test/yardstick, a program that shares
// no code with us.
//
// The speed of the emulated machine changes from second to second. So both measure in many
// short rounds, one right after the other, each with new objects, and each is first as often
// as the other. The result is the median of the ratios within the rounds, with their range.
func BenchmarkLatency(b *testing.B) {
	file := yardstickFile(b)
	for _, loop := range []string{"loopback_any", "loopback_poll", "flush_any", "flush_poll"} {
		b.Run(loop, func(b *testing.B) {
			var ours, theirs []time.Duration
			var ratios []float64
			for round := range latencyRounds * b.N {
				var us, them time.Duration
				sides := []func(){func() { us = byUs(b, loop) }, func() { them = byYardstick(b, file, loop) }}
				sides[round%2]()
				sides[1-round%2]()
				ours, theirs, ratios = append(ours, us), append(theirs, them), append(ratios, float64(us)/float64(them))
			}
			b.ReportMetric(0, "ns/op") // the time of all this together means nothing
			b.ReportMetric(middle(ratios), "ratio")
			b.Logf("ratio %.3f, from %.2f to %.2f; median %v, the yardstick's %v",
				middle(ratios), ratios[0], ratios[len(ratios)-1], middle(ours), middle(theirs))
		})
	}
}
