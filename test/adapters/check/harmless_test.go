//go:build vm

package check

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

var runs = flag.Int("check.runs", 7, "runs of the probes on each device of TestHarmless, after the first; each kind of object has its turn in one of them")

// mostVectors is the default of --notification.vectors. The others are the most that a
// run may create on a device that is known: queue pairs, and objects in all.
const (
	mostVectors   = 4
	mostQPs       = 12
	mostCreations = 40
)

// creators are the verbs that create something.
var creators = []string{
	"ibv_alloc_pd", "ibv_reg_mr", "ibv_create_ah", "ibv_create_comp_channel", "ibv_create_cq", "ibv_create_srq", "ibv_create_qp",
}

var (
	// runsTotal and contractRuns are samples of the runs of a device. The last process of
	// a contract run is the one that is ok.
	runsTotal    = regexp.MustCompile(`(?m)^rdma_probe_runs_total\{device="([^"]+)",outcome="[^"]+"()\} (\d+)$`)
	contractRuns = regexp.MustCompile(`(?m)^rdma_contract_runs_total\{device="([^"]+)",outcome="ok"()\} (\d+)$`)
	// calls is a sample of the calls of a verb on a device, refused ones too.
	calls = regexp.MustCompile(`(?m)^rdma_verbs_call_latency_seconds_count\{device="([^"]+)",verb="([^"]+)"\} (\d+)$`)
)

// numbers adds up samples by device, and by device and what else they are of.
func numbers(t testing.TB, samples *regexp.Regexp, text string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, m := range samples.FindAllStringSubmatch(text, -1) {
		n := running.Must(strconv.Atoi(m[3]))(t)
		all[m[1]+" "+m[2]] += n
	}
	return all
}

// TestHarmless lets the exporter probe at its defaults, but more often, and counts what
// that asks for and leaves behind: objects, lines in the kernel's log, and event queues
// that mlx5 makes when a completion vector is first used and never gives back. What is
// asked for in order to be refused, by the first run of the probes and by the contract
// audit, is done with before it counts what a run creates and what the kernel says.
func TestHarmless(t *testing.T) {
	list := adapters(t)
	before := held(t)
	_, said := kernelLog(t, 0)
	exporter := running.Launch(t, "exporter", exporterFile,
		append([]string{"--web.listen-address=127.0.0.1:0", "--probe.interval=1s", "--collector.verb-histograms"}, running.Unhurried()...)...)
	url := "http://" + exporter.Listening(t) + "/metrics"
	wait := func(what string, done func(page string) bool) string {
		running.Within(t, time.Duration(*runs)*time.Minute+5*time.Minute, what, func() bool {
			exporter.MustRun(t)
			if done(get(t, url+"?exclude[]=verb-histograms")) {
				return true
			}
			time.Sleep(500 * time.Millisecond) // each look costs the emulated processor time
			return false
		})
		return get(t, url)
	}
	first := wait("a first run and a contract run of each device", func(page string) bool {
		probed, judged := numbers(t, runsTotal, page), numbers(t, contractRuns, page)
		return !slices.ContainsFunc(list, func(a adapter) bool { return probed[a.name+" "] == 0 || judged[a.name+" "] == 0 })
	})
	lines, saidFirst := kernelLog(t, said)
	t.Logf("%d lines in the kernel's log by then", len(lines))
	runsBefore, callsBefore := numbers(t, runsTotal, first), numbers(t, calls, first)
	last := wait(fmt.Sprintf("%d runs more on each device", *runs), func(page string) bool {
		probed := numbers(t, runsTotal, page)
		return !slices.ContainsFunc(list, func(a adapter) bool { return probed[a.name+" "] < runsBefore[a.name+" "]+*runs })
	})
	exporter.Stop(t)
	lines, _ = kernelLog(t, saidFirst)
	for _, line := range lines {
		// That the emulated machine is slow is not of our making.
		if !strings.Contains(line, "hrtimer: interrupt took") {
			t.Errorf("the kernel said: %s", line)
		}
	}
	runsAfter, callsAfter := numbers(t, runsTotal, last), numbers(t, calls, last)
	for _, a := range list {
		n := runsAfter[a.name+" "] - runsBefore[a.name+" "]
		since := func(verb string) int { return callsAfter[a.name+" "+verb] - callsBefore[a.name+" "+verb] }
		qps, all := since("ibv_create_qp"), 0
		for _, verb := range creators {
			all += since(verb)
		}
		t.Logf("%s, before: %d runs and the contracts: %d calls of ibv_create_qp", a.spec, runsBefore[a.name+" "], callsBefore[a.name+" ibv_create_qp"])
		t.Logf("%s, %d runs: %d calls of ibv_create_qp, %d creations in all", a.spec, n, qps, all)
		if qps > mostQPs*n || all > mostCreations*n {
			t.Errorf("%s: a run creates more than %d queue pairs or %d objects in all", a.spec, mostQPs, mostCreations)
		}
		counters := a.counters(t)
		t.Logf("%s, in all: %v", a.spec, counters)
		if n := counters["event_queues"]; (n == 0) != (counters["created_cqs"] == 0) || n > mostVectors {
			t.Errorf("%s: %d completion vectors were used, want %d at most", a.spec, n, mostVectors)
		}
	}
	running.Eventually(t, "what is held is what was held", func() bool { return held(t) == before })
}

func get(t testing.TB, url string) string {
	t.Helper()
	return string(running.Must(running.Get(nil, url))(t))
}
