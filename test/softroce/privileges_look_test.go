//go:build vm

package softroce

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	whole "rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

// A sight is what an exporter finds in a situation.
type sight struct {
	probes, messages, raw, contracts      string
	objects, owners, memory, pod, orphans string
	findings                              []string
}

func sightColumns() []string {
	return []string{"probes", "messages", "raw packet", "contracts checked", "objects", "owners", "their memory", "their pod and its limits", "orphans", "findings that tell"}
}

func (s sight) cells() []string {
	findings := "none"
	if len(s.findings) > 0 {
		findings = "`" + strings.Join(s.findings, "`, `") + "`"
	}
	return []string{s.probes, s.messages, s.raw, s.contracts, s.objects, s.owners, s.memory, s.pod, s.orphans, findings}
}

// look starts an exporter in a situation, and tells what it finds.
func (h *privilegedHost) look(t *testing.T, s situation) sight {
	t.Helper()
	contracts := "0"
	if s.contracts {
		contracts = "1h"
	}
	args := slices.Concat(s.wrap, []string{
		h.exporter, anyPort, "--device.include=" + active, "--config.file=" + h.config,
		"--probe.interval=1h", "--probe.timeout=2m", "--contract.interval=" + contracts, "--contract.timeout=4m",
		"--inventory.interval=1h", "--inventory.timeout=1m", "--collector.cgroups", "--hardware.interval=0", "--notification.samples=2", "--notification.vectors=1",
	})
	log := &running.Output{}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = time.Second
	running.Check(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if t.Failed() {
			t.Logf("%s\n%s", strings.Join(args, " "), log)
		}
	})
	pid := 0
	await(t, "the exporter to run", func() bool {
		select {
		case <-done:
			t.Fatalf("it has ended:\n%s", log)
		default:
		}
		pid = exporterBelow(cmd.Process.Pid)
		return pid != 0
	})
	if got := rightsOf(t, pid); got != s.rights {
		t.Errorf("the exporter has the rights %+v, want %+v", got, s.rights)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dialerIn(pid), DisableKeepAlives: true}}
	var seen whole.Status
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * poll) {
		if time.Now().After(deadline) {
			t.Fatalf("the exporter has not come to its end: %+v", seen)
		}
		address := log.Listening()
		if address == "" {
			continue
		}
		var err error
		if seen, err = statusFrom(client, "http://"+address); err == nil && hasLooked(seen, s.contracts) {
			break
		}
	}
	signal(t, pid, syscall.SIGTERM)
	<-done
	got := sightOf(t, seen, s.contracts)
	t.Logf("%+v", got)
	return got
}

// exporterBelow returns the exporter among a process and those that it started; 0 if
// there is none yet.
func exporterBelow(pid int) int {
	if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.TrimSpace(string(comm)) == "rdma_exporter" {
		return pid
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		list, _ := os.ReadFile(task)
		for _, field := range strings.Fields(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				if found := exporterBelow(child); found != 0 {
					return found
				}
			}
		}
	}
	return 0
}

// rightsOf returns what the kernel says that a process has.
func rightsOf(t *testing.T, pid int) rights {
	t.Helper()
	var r rights
	for line := range strings.Lines(running.Command(t, "cat", fmt.Sprintf("/proc/%d/status", pid))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		var err error
		switch name {
		case "Uid":
			r.uid, err = strconv.Atoi(strings.Fields(value)[1])
		case "CapEff":
			r.capabilities, err = strconv.ParseUint(value, 16, 64)
		case "Seccomp":
			r.filtered = value == "2"
		}
		if err != nil {
			t.Fatalf("process %d: %q: %v", pid, line, err)
		}
	}
	for line := range strings.Lines(running.Command(t, "cat", fmt.Sprintf("/proc/%d/limits", pid))) {
		value, ok := strings.CutPrefix(line, "Max locked memory")
		if !ok {
			continue
		}
		if r.memlock = -1; strings.Fields(value)[0] != "unlimited" {
			var err error
			if r.memlock, err = strconv.ParseInt(strings.Fields(value)[0], 10, 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

func dialerIn(pid int) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		type result struct {
			conn net.Conn
			err  error
		}
		results := make(chan result, 1)
		var dial func()
		dial = func() {
			// The thread is never unlocked, and so ends with its namespace. The first thread of
			// the process cannot end: it waits for another one.
			runtime.LockOSThread()
			if unix.Gettid() == os.Getpid() {
				defer runtime.UnlockOSThread()
				var other sync.WaitGroup
				other.Go(dial)
				other.Wait()
				return
			}
			ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
			if err != nil {
				results <- result{err: err}
				return
			}
			defer func() { _ = ns.Close() }()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				results <- result{err: err}
				return
			}
			// An address that needs no resolver is dialled by this very thread.
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			results <- result{conn, err}
		}
		go dial()
		r := <-results
		return r.conn, r.err
	}
}

func statusFrom(client *http.Client, url string) (s whole.Status, err error) {
	body, err := running.Get(client, url+"/api/v2/status")
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	for i := range s.Devices {
		s.Devices[i].State = *s.Devices[i].DeviceState
	}
	return s, err
}

// hasLooked tells whether the exporter has done all that it does at its start.
func hasLooked(s whole.Status, contracts bool) bool {
	if s.Problem != nil {
		return s.Problem.Kind == health.ProblemNoDevices
	}
	return len(s.Devices) == 1 && s.Devices[0].Last != nil && s.Devices[0].Resources != nil && s.Devices[0].Resources.Last != nil &&
		(!contracts || s.Devices[0].Contracts != nil && (len(s.Devices[0].Contracts.Verdicts) > 0 || s.Devices[0].Contracts.Last.Outcome != state.OutcomeOK))
}

// sightOf tells what a status says.
func sightOf(t *testing.T, s whole.Status, contracts bool) sight {
	t.Helper()
	got := sight{probes: "no device", messages: "none", raw: "none", contracts: "not tried", objects: "none", owners: "none", memory: "no", pod: "no", orphans: "no"}
	if len(s.Devices) == 0 {
		got.findings = []string{string(s.Problem.Kind)}
		return got
	}
	d := &s.Devices[0]
	got.probes = probesOf(t, d)
	if got.probes == "ok" || slices.ContainsFunc(d.Findings, func(f health.Finding) bool { return f.Kind == health.FindingMemlockRefused }) {
		got.messages, got.raw = "8 bytes", "permitted"
		for _, p := range d.Last.Probes {
			for _, skip := range p.Skips {
				switch {
				case skip.Subject.Object == "message":
					got.messages = "empty"
				case skip.Subject.QPType == "raw_packet" && skip.Reason == state.SkipNotPermitted:
					got.raw = "not permitted"
				case skip.Reason == state.SkipNotPermitted && p.Name != "mr":
					t.Errorf("%s: %s was skipped: %s, %s", p.Name, skip.Subject, skip.Reason, skip.Detail)
				}
			}
		}
		if !slices.ContainsFunc(d.Latencies(), func(l state.Latency) bool { return l.Path == state.PathLoopback }) {
			t.Error("no message was measured")
		}
	}
	if contracts {
		got.contracts = strconv.Itoa(len(d.Contracts.With(state.VerdictHolds)) + len(d.Contracts.With(state.VerdictViolated)) + d.Contracts.KnownViolated())
	}
	whoOwns(t, d, &got)
	for _, f := range d.Findings {
		switch f.Kind {
		case health.FindingUnusable, health.FindingMemlockRefused, health.FindingProbeFailed, health.FindingIncomplete, health.FindingPIDsInvisible, health.FindingRunAborted:
			if !slices.Contains(got.findings, string(f.Kind)) {
				got.findings = append(got.findings, string(f.Kind))
			}
		default: // of the device, not of rights
		}
	}
	return got
}

// probesOf returns how the probes went, with the verb that failed first.
func probesOf(t *testing.T, d *whole.Device) string {
	t.Helper()
	switch {
	case d.Last.Outcome == state.OutcomeOK:
		return "ok"
	case d.Last.FailedVerb != "":
		return fmt.Sprintf("`%s`: %s", d.Last.FailedVerb, d.Last.Errno)
	}
	for _, p := range d.Last.Probes {
		for _, f := range p.Failures {
			return fmt.Sprintf("`%s`: %s", f.Verb, f.Errno)
		}
	}
	t.Errorf("the run is %s without a failure: %+v", d.Last.Outcome, d.Last)
	return string(d.Last.Outcome)
}

// whoOwns tells what is known of the objects that the test's programs hold, and of
// their owners.
func whoOwns(t *testing.T, d *whole.Device, got *sight) {
	t.Helper()
	r := d.Resources
	if r.Last.Outcome != state.OutcomeOK {
		return
	}
	owners := r.Inventory.Owners
	for _, typ := range d.Usage() {
		if typ.Type != "qp" {
			continue
		}
		if typ.User < outsideQPs {
			t.Errorf("%d queue pairs are counted", typ.User)
		}
		got.objects = "counted"
		if typ.Orphaned != nil {
			got.orphans = "told"
		}
	}
	has := func(qps int64) func(state.Owner) bool {
		return func(o state.Owner) bool { return slices.Contains(o.Objects, state.TypeCount{Type: "qp", Objects: qps}) }
	}
	i := slices.IndexFunc(owners, has(outsideQPs))
	if i < 0 {
		if slices.ContainsFunc(owners, has(insideQPs)) {
			got.owners = "those of the namespace"
			i = slices.IndexFunc(owners, has(insideQPs))
		} else {
			return
		}
	}
	o := owners[i]
	if got.owners == "none" {
		got.owners = "pid"
		if o.Comm != "" {
			got.owners = "pid and command"
		}
	}
	if o.Memlock != nil {
		got.memory = "yes"
	}
	limits := slices.ContainsFunc(r.Inventory.Cgroups, func(c state.CgroupUse) bool {
		return c.ContainerID == containerID && c.Resource == "hca_object" && c.Limit == 500
	})
	switch {
	case o.PodUID == podUID && o.ContainerID == containerID && limits:
		got.pod = "yes"
	case o.PodUID == podUID && o.ContainerID == containerID:
		got.pod = "pod only"
	}
}
