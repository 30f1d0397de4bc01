//go:build vm

package softroce

import (
	"bytes"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"rdma_exporter/test/running"
)

const (
	// patience is how long the tests wait for what must happen some time. It says
	// nothing of how long it should take.
	patience = 5 * time.Minute
	// poll is the pause between two looks at it.
	poll = 100 * time.Millisecond
	// scrapePoll is that between two scrapes at first, and longestPoll after some: scrapes
	// cost the emulated processor a good part of the pause.
	scrapePoll, longestPoll = 3 * poll, 10 * poll
	// outputDelay is how long the output of an exporter that has ended is waited for.
	// Only one that another process holds takes that long.
	outputDelay = time.Minute
)

// exporter is a running exporter.
type exporter struct {
	t    testing.TB
	cmd  *exec.Cmd
	url  string
	log  *running.Output
	done chan struct{}
	// err is how the process ended, once done is closed.
	err error
}

// options say how to start an exporter.
type options struct {
	// wrap is a command that starts the one that follows it.
	wrap []string
	// binary is the exporter's file if it is not the usual one.
	binary string
	// flags replace those that every exporter is started with.
	flags []string
	// lean leaves the collectors off that are off by default.
	lean bool
}

// further are the flags that switch on the collectors that are off by default: tests look
// at more than a fleet pays for. Only those that need them have [histograms].
func further() []string {
	return []string{"--collector.memory", "--collector.limits", "--collector.owner-pids", "--collector.cgroups"}
}

// histograms has a scrape tell how often each verb was called, which makes it three times as
// dear.
const histograms = "--collector.verb-histograms"

// standing are the flags of every exporter that has no others of these names: it
// probes every second, takes no inventory, and notices devices quickly. An event is
// waited for so long that it is not missed while the machine stands still for want
// of a processor, each measurement comes to its end, and a run or an inventory may take as
// long as that can make it.
func standing() []string {
	return append(
		patient(), "--probe.interval=1s",
		"--contract.interval=0", "--inventory.interval=0",
	)
}

// patient are the flags of these that bound what may take long. Where nothing hangs,
// nothing takes that long, on a machine that is emulated in software neither.
func patient() []string {
	return []string{
		"--probe.timeout=2m", "--contract.timeout=4m", "--inventory.timeout=1m",
	}
}

// seldom is for tests that wait for something else than runs of the probes, which take what
// the processor has left.
const seldom = "--probe.interval=5s"

// start starts an exporter with the standing flags and its own, and waits until it
// serves. At the end of the test the exporter is stopped if it still runs, and the
// kernel must hold what it held at the start.
func start(t testing.TB, o options) *exporter {
	t.Helper()
	before := resources(t)
	t.Cleanup(func() { awaitResources(t, before) })

	args := append([]string{}, o.wrap...)
	if o.binary == "" {
		o.binary = exporterFile
	}
	args = append(args, o.binary, anyPort)
	for _, flag := range standing() {
		name, _, _ := strings.Cut(flag, "=")
		if !slices.ContainsFunc(o.flags, func(f string) bool { return strings.HasPrefix(f, name+"=") }) {
			args = append(args, flag)
		}
	}
	if !o.lean {
		args = append(args, further()...)
	}
	args = append(args, o.flags...)

	e := &exporter{
		t: t, cmd: exec.Command(args[0], args[1:]...),
		log: &running.Output{}, done: make(chan struct{}),
	}
	e.cmd.Stdout = e.log
	e.begin()
	e.await("the exporter to serve", func() bool {
		if e.ended() {
			t.Fatalf("the exporter has ended: %v", e.err)
		}
		address := e.log.Listening()
		if address == "" {
			return false
		}
		e.url = "http://" + address
		_, err := e.get("/-/healthy")
		return err == nil
	})
	return e
}

// anyPort has an exporter listen where nobody else does.
const anyPort = "--web.listen-address=127.0.0.1:0"

func (e *exporter) pid() int { return e.cmd.Process.Pid }

func (e *exporter) ended() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// terminate asks the exporter to end, and makes sure that it does so with status
// 0. It returns how long that took.
func (e *exporter) terminate() time.Duration {
	e.t.Helper()
	began := time.Now()
	if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		e.t.Fatalf("SIGTERM: %v", err)
	}
	select {
	case <-e.done:
	case <-time.After(patience):
		e.t.Fatalf("the exporter has not ended %v after SIGTERM", patience)
	}
	took := time.Since(began)
	if e.err != nil {
		e.t.Errorf("the exporter ended with %v after SIGTERM", e.err)
	}
	return took
}

// begin starts the process, which ends with the test.
func (e *exporter) begin() {
	e.t.Helper()
	e.cmd.Stderr = e.log
	// A child that cannot be killed may hold the exporter's standard error.
	e.cmd.WaitDelay = outputDelay
	running.Check(e.t, e.cmd.Start())
	go func() {
		e.err = e.cmd.Wait()
		close(e.done)
	}()
	e.t.Cleanup(func() {
		if !e.ended() {
			_ = e.cmd.Process.Kill()
			<-e.done
		}
		if e.t.Failed() {
			e.t.Logf("the exporter's log:\n%s", e.log)
		}
	})
}

// await waits until cond is true.
func (e *exporter) await(what string, cond func() bool) {
	e.t.Helper()
	await(e.t, what, cond)
}

func await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	awaitEvery(t, poll, poll, what, cond)
}

// awaitEvery waits until cond is true, with pauses that grow from the shortest to the longest.
func awaitEvery(t testing.TB, shortest, longest time.Duration, what string, cond func() bool) {
	t.Helper()
	pause := shortest
	for deadline := time.Now().Add(patience); !cond(); pause = min(pause*5/4, longest) {
		time.Sleep(pause)
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain for %s", patience, what)
		}
	}
}

// until scrapes until cond is true of a scrape, which it returns. Every scrape
// must succeed.
func (e *exporter) until(what string, cond func(metrics) bool) metrics {
	e.t.Helper()
	var m metrics
	awaitEvery(e.t, scrapePoll, longestPoll, what, func() bool {
		m = e.scrape()
		return cond(m)
	})
	return m
}

var client = &http.Client{Timeout: patience}

func (e *exporter) get(path string) ([]byte, error) { return running.Get(client, e.url+path) }

// scrape returns the metrics, which must be there at any time.
func (e *exporter) scrape() metrics {
	e.t.Helper()
	return e.scrapeOf("")
}

func (e *exporter) scrapeOf(query string) metrics {
	e.t.Helper()
	b, err := e.get("/metrics?" + query)
	if err != nil {
		if e.ended() {
			e.t.Fatalf("the exporter has ended: %v", e.err)
		}
		e.t.Fatalf("scrape: %v", err)
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(b))
	if err != nil {
		e.t.Fatalf("parse the metrics: %v", err)
	}
	return families
}

// rounds waits until each of the devices was probed n times more.
func (e *exporter) rounds(n int, devices ...string) metrics {
	e.t.Helper()
	if len(devices) == 0 {
		devices = []string{active, down}
	}
	m := e.scrape()
	want := make(map[string]float64)
	for _, d := range devices {
		want[d] = m.runs(d) + float64(n)
	}
	return e.until(fmt.Sprintf("%d more runs on %s", n, strings.Join(devices, " and ")), func(m metrics) bool {
		for d, n := range want {
			if m.runs(d) < n || !m.probed(d) {
				return false
			}
		}
		return true
	})
}
