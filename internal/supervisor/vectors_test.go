package supervisor

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// measuring is a child that tells of so many completion vectors, and measures some of
// them, each with one sample of so long.
func measuring(t *testing.T, vectors int, samples map[int]time.Duration) script {
	t.Helper()
	var b strings.Builder
	w := wire.NewWriter(&b)
	p := state.Probe{Name: "notification", Status: state.StatusOK}
	for vector, sample := range samples {
		for _, mode := range []state.LatencyMode{state.ModeAny, state.ModePoll} {
			l := state.Latency{Port: 1, Path: state.PathFlush, Mode: mode, Vector: vector, Samples: []time.Duration{sample}, Arms: []time.Duration{1}}
			l.Summarise()
			p.Latencies = append(p.Latencies, l)
		}
	}
	_, _, _ = w.Device(state.Device{CompletionVectors: vectors}), w.Probe(p), w.End(wire.End{})
	if err := w.Err(); err != nil {
		t.Fatal(err)
	}
	return script{output: b.String()}
}

// vectorsOf says what is known of the vectors of a device: number, median, and the
// minute of the run that measured it.
func vectorsOf(t *testing.T, b *bench, device string) string {
	t.Helper()
	n := stateOf(t, b.Snapshot(), device).Notification
	if n == nil {
		return "nothing"
	}
	var all []string
	for _, v := range n.Vectors {
		all = append(all, fmt.Sprintf("%d: %d at %d", v.Vector, v.P50, int(v.Measured.Sub(b.kids.begin)/time.Minute)))
		if v.Mode != state.ModeAny || v.Samples != nil || v.Arms != nil || len(v.Bins) != 1 || v.Bins[0].Samples != 1 {
			t.Errorf("kept of vector %d: %+v", v.Vector, v)
		}
	}
	return strings.Join(all, ", ")
}

// TestLatestVectors makes sure that the latest measurement of each vector is kept,
// whichever run took it, for as long as the device has the vector.
func TestLatestVectors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		killed := measuring(t, 4, map[int]time.Duration{1: 11})
		_, killed.output, _ = strings.Cut(killed.output, "\n") // It did not say what the device is.
		killed.output, killed.takes = strings.TrimSuffix(killed.output, `{"end":{}}`+"\n"), -1
		steps := []struct {
			name  string
			child script
			want  string
		}{
			{"nothing measured", measuring(t, 4, nil), "nothing"},
			{"the first", measuring(t, 4, map[int]time.Duration{1: 10, 0: 20}), "0: 20 at 1, 1: 10 at 1"},
			{"others", measuring(t, 4, map[int]time.Duration{2: 30, 3: 40}), "0: 20 at 1, 1: 10 at 1, 2: 30 at 2, 3: 40 at 2"},
			{"nothing measured any more", measuring(t, 4, nil), "0: 20 at 1, 1: 10 at 1, 2: 30 at 2, 3: 40 at 2"},
			{"some again", measuring(t, 4, map[int]time.Duration{0: 21, 3: 41}), "0: 21 at 4, 1: 10 at 1, 2: 30 at 2, 3: 41 at 4"},
			{"fewer vectors", measuring(t, 3, map[int]time.Duration{2: 31}), "0: 21 at 4, 1: 10 at 1, 2: 31 at 5"},
			{"more than there are", measuring(t, 3, map[int]time.Duration{3: 1}), "0: 21 at 4, 1: 10 at 1, 2: 31 at 5"},
			{"by a run that was killed", killed, "0: 21 at 4, 1: 11 at 7, 2: 31 at 5"},
			{"no vectors", measuring(t, 0, nil), "nothing"},
			{"a few of many", measuring(t, 1000, map[int]time.Duration{0: 50, 999: 60}), "0: 50 at 9, 999: 60 at 9"},
		}
		next := func(_ string, n int) script { return steps[min(n, len(steps)-1)].child }
		b := newBench(t, next, func(c *Config) { c.Backoff = c.Interval }, "a")
		b.start()
		var earlier []*state.Notification
		for i, step := range steps {
			if got := vectorsOf(t, b, "a"); got != step.want {
				t.Errorf("%s: got %s, want %s", step.name, got, step.want)
			}
			earlier = append(earlier, stateOf(t, b.Snapshot(), "a").Notification)
			pause := time.Minute
			if i+1 < len(steps) && steps[i+1].child.takes < 0 {
				pause += b.cfg.Timeout // Until it is killed; the next one is the later.
			}
			b.after(pause)
		}
		// What was published before has stayed as it was.
		wantEqual(t, "vectors of an earlier snapshot", len(earlier[1].Vectors), 2)
		wantEqual(t, "a median of an earlier snapshot", earlier[2].Vectors[0].P50, 20*time.Nanosecond)
		b.end()
	})
}

// A child that is out of its mind cannot make the exporter keep any number of vectors.
func TestLatestVectorsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		samples := make(map[int]time.Duration)
		for vector := range 1000 {
			samples[vector] = 1
		}
		b := newBench(t, always(measuring(t, 1<<20, samples)), nil, "a")
		b.start()
		if n := len(stateOf(t, b.Snapshot(), "a").Notification.Vectors); n != 256 {
			t.Errorf("%d vectors are kept", n)
		}
		b.end()
	})
}

// What is known of the vectors goes with the device.
func TestVectorsOfVanished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := scriptUnkillable()
		next := func(_ string, n int) script {
			switch n {
			case 0:
				return measuring(t, 4, map[int]time.Duration{0: 20})
			case 1:
				return child
			default:
				return measuring(t, 4, map[int]time.Duration{1: 10})
			}
		}
		b := newBench(t, next, nil, "a")
		b.start()
		b.after(2 * time.Minute)
		if got := vectorsOf(t, b, "a"); got != "0: 20 at 0" {
			t.Errorf("while a child is stuck: %s", got)
		}
		b.host(nil)
		b.after(time.Minute)
		if got := vectorsOf(t, b, "a"); got != "nothing" {
			t.Errorf("after it vanished: %s", got)
		}
		b.host(nil, "a")
		close(child.release)
		b.after(time.Minute)
		if got := vectorsOf(t, b, "a"); !strings.HasPrefix(got, "1: 10 at ") {
			t.Errorf("after it came back: %s", got)
		}
		b.end()
	})
}
