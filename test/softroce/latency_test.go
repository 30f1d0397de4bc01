//go:build vm

package softroce

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

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
func byUs(t testing.TB, loop string) latencies {
	t.Helper()
	m, device, done := measurement(t, loop)
	found, err := device.Measure(m)
	done()
	if err != nil {
		t.Fatalf("Measure %s: %v", loop, err)
	}
	if len(found.Latency) != latencySamples || found.Missed+found.Spurious+found.Misdirected+found.Missing > 0 {
		found.Latency, found.Arm = nil, nil
		t.Errorf("Measure %s: %+v", loop, found)
	}
	slices.Sort(found.Latency)
	return latencies{median: quantile(found.Latency, 0.5), p99: quantile(found.Latency, 0.99)}
}

// quantile returns the smallest of the sorted values that the given share of them
// do not exceed.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(int(share*float64(len(sorted))+0.999999)-1, 0)]
}

// measurement makes what the yardstick makes for a loop: the same objects with
// the same sizes. done closes them.
func measurement(t testing.TB, loop string) (m verbs.Measurement, d verbs.Device, done func()) {
	t.Helper()
	var closers []interface{ Close() error }
	done = func() {
		t.Helper()
		for _, c := range slices.Backward(closers) {
			if err := c.Close(); err != nil {
				t.Errorf("Close of %T: %v", c, err)
			}
		}
	}
	must := func(c interface{ Close() error }, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		closers = append(closers, c)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d, err := ibverbs.New(nil).Open(active)
	must(d, err)
	pd, err := d.AllocPD()
	must(pd, err)
	mr, err := pd.RegMR(4096, verbs.AccessLocalWrite)
	must(mr, err)

	end := func(tellSent bool) (qp verbs.QP, sent, received verbs.CQ, ch verbs.CompChannel) {
		t.Helper()
		ch, err := d.CreateCompChannel()
		must(ch, err)
		forSent, forReceived := verbs.CQInitAttr{Entries: entries}, verbs.CQInitAttr{Entries: entries}
		if tellSent {
			forSent.Channel = ch
		} else {
			forReceived.Channel = ch
		}
		sent, err = d.CreateCQ(forSent)
		must(sent, err)
		received, err = d.CreateCQ(forReceived)
		must(received, err)
		qp, err = pd.CreateQP(verbs.QPInitAttr{
			Type: verbs.RC, SendCQ: sent, RecvCQ: received,
			Cap: verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1},
		})
		must(qp, err)
		check(qp.Modify(verbs.ToInit(verbs.RC, 1, verbs.AccessLocalWrite)))
		return qp, sent, received, ch
	}
	kind, how, _ := strings.Cut(loop, "_")
	m = verbs.Measurement{
		Send: verbs.SendWR{Flags: verbs.SendSignaled, SGEs: []verbs.SGE{mr.SGE(0, message)}},
		Recv: verbs.RecvWR{SGEs: []verbs.SGE{mr.SGE(64, message)}},

		Warmup: latencyWarmup, Samples: latencySamples, Deadline: latencyDeadline, Budget: time.Minute,
	}
	var ch verbs.CompChannel
	switch kind {
	case "loopback":
		m.Sender, m.Other, _, _ = end(false)
		m.Receiver, _, m.CQ, ch = end(false)
		m.Status = verbs.WCSuccess
		port, err := d.QueryPort(1)
		check(err)
		table, err := d.GIDTable()
		check(err)
		self, err := verbs.ToSelf(1, port, table)
		check(err)
		for _, pair := range [][2]verbs.QP{{m.Receiver, m.Sender}, {m.Sender, m.Receiver}} {
			check(pair[0].Modify(verbs.ToRTR(verbs.RC, verbs.Peer{AH: self[0], QPN: pair[1].Number(), PathMTU: port.ActiveMTU})))
			check(pair[0].Modify(verbs.ToRTS(verbs.RC)))
		}
	case "flush":
		m.Sender, m.CQ, _, ch = end(true)
		m.Status = verbs.WCWRFlushErr
		check(m.Sender.Modify(verbs.ToError()))
	}
	if how == "any" {
		m.Channel = ch
	}
	return m, d, done
}

// BenchmarkLatency holds our latencies against those of test/yardstick, a program
// that shares no code with us.
//
// The machine is emulated on processors that have other work, and what a
// microsecond is worth changes from one second to the next. So all measure in the
// same machine, on the same device, one right after the other, many short rounds
// long, and take turns in being first. A ratio is taken within each round, where
// all had the same weather, and the median of these ratios is what counts: a bad
// round does not move it. Their range tells what the figure is worth. Each makes
// its objects anew in each round, so that where they come to lie in memory is not
// what is compared. A round is long enough to outlast what Go's runtime does when
// it sees a long call of C begin.
//
// The yardstick has one thread. With a second, idle one the kernel's calls on
// files are a little slower for it, which a Go program, with its several threads,
// avoids only in part: so that is told beside.
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
				for turn := range sides {
					side := (round + turn) % len(sides)
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
