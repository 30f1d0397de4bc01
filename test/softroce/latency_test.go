//go:build vm

package softroce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
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

// latencies are those of one round of one loop.
type latencies struct {
	median, p99 time.Duration
}

// byYardstick has the yardstick take one round: of a loop, which may come after
// options.
func byYardstick(t testing.TB, file string, args ...string) latencies {
	t.Helper()
	args = append([]string{
		"-d", active, "-n", strconv.Itoa(latencySamples), "-w", strconv.Itoa(latencyWarmup),
		"-t", strconv.FormatInt(latencyDeadline.Milliseconds(), 10),
	}, args...)
	out, err := exec.Command(file, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("yardstick %q: %v\n%s%s", args, err, out, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Samples, Missed, Spurious, Missing, Unsuccessful int
		Median, P99                                      time.Duration
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("yardstick %q: %v in %q", args, err, out)
	}
	if found.Samples != latencySamples || found.Missed+found.Spurious+found.Missing+found.Unsuccessful > 0 {
		t.Errorf("yardstick %q: %s", args, out)
	}
	return latencies{median: found.Median, p99: found.P99}
}

// byUs takes one round of a loop.
func byUs(t testing.TB, loop string) (l latencies) {
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
		slices.Sort(found.Latency)
		l = latencies{median: quantile(found.Latency, 0.5), p99: quantile(found.Latency, 0.99)}
		return nil
	})
	if err := errors.Join(err, failed); err != nil {
		t.Fatalf("%s: %v", loop, err)
	}
	return l
}

// quantile returns the smallest of the sorted values that the given share of them
// do not exceed.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(int(share*float64(len(sorted))+0.999999)-1, 0)]
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
// The speed of the emulated machine changes from second to second. So all measure in many
// short rounds, one right after the other, each with new objects, and each is first as often
// as the others. The result is the median of the ratios within the rounds, with their range.
//
// The yardstick has one thread. With a second, idle one the kernel's calls on files are a
// little slower, as they are for a Go program, so that is measured too.
func BenchmarkLatency(b *testing.B) {
	file := yardstickFile(b)
	sides := []func(loop string) latencies{
		func(loop string) latencies { return byUs(b, loop) },
		func(loop string) latencies { return byYardstick(b, file, loop) },
		func(loop string) latencies { return byYardstick(b, file, "-T", loop) },
	}
	loops := []string{"loopback_any", "loopback_poll", "flush_any", "flush_poll"}
	found := make(map[string][][]latencies) // by loop, side and round
	for _, loop := range loops {
		found[loop] = make([][]latencies, len(sides))
	}
	for range b.N {
		for round := range latencyRounds {
			for _, loop := range loops {
				for i := range sides {
					side := (round + i) % len(sides)
					found[loop][side] = append(found[loop][side], sides[side](loop))
				}
			}
		}
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "loop\tsamples\tmedian\tp99\tyardstick's median\tp99\tratio of medians\tin the rounds\tratio to two threads\tin the rounds\t")
	for _, loop := range loops {
		ours, theirs, threads := found[loop][0], found[loop][1], found[loop][2]
		ratio, lowest, highest := compare(ours, theirs)
		other, lowestOther, highestOther := compare(ours, threads)
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%.3f\t%.2f to %.2f\t%.3f\t%.2f to %.2f\t\n",
			loop, latencySamples*len(ours), middle(ours, median), middle(ours, p99),
			middle(theirs, median), middle(theirs, p99),
			ratio, lowest, highest, other, lowestOther, highestOther)
		b.ReportMetric(ratio, loop+"-ratio")
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(0, "ns/op") // the time of all this together means nothing
	b.Logf("of %d samples a round, the middle one of %d rounds\n%s", latencySamples, latencyRounds*b.N, &table)
}

// compare returns the median of the ratios of the medians of both sides' rounds,
// and the range of these ratios.
func compare(ours, theirs []latencies) (ratio, lowest, highest float64) {
	ratios := make([]float64, len(ours))
	for i, o := range ours {
		ratios[i] = float64(o.median) / float64(theirs[i].median)
	}
	slices.Sort(ratios)
	n := len(ratios)
	return (ratios[(n-1)/2] + ratios[n/2]) / 2, ratios[0], ratios[n-1]
}

func median(l latencies) time.Duration { return l.median }
func p99(l latencies) time.Duration    { return l.p99 }

// middle returns the median over the rounds.
func middle(rounds []latencies, of func(latencies) time.Duration) time.Duration {
	var list []time.Duration
	for _, l := range rounds {
		list = append(list, of(l))
	}
	slices.Sort(list)
	return quantile(list, 0.5)
}
