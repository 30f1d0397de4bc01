package e2e_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// lightProfile are devices of which one is used by somebody, one by the kernel alone,
// and one of which the kernel does not tell.
const lightProfile = `devices:
  - {name: busy, like: sim_ib0, resources: {holders: [{pid: 4711, comm: mpirun, objects: {qp: 2}}]}}
  - {name: idle, like: sim_ib0, resources: {holders: [{kernel: ib_core, objects: {qp: 1}}, {pid: 4712, comm: watch, objects: {cq: 1}}]}}
  - {name: untold, like: sim_ib0, resources: {holders: [], incomplete: {qp: failed}}}
`

// idleLines are what depends on --probe.when.
var idleLines = regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?rdma_(probe_light|probe_success|probe_cq_entries_actual|contract_last_run)[ {_].*`)

// With --probe.when=idle, devices that others use are left alone, and nobody else's.
func TestLight(t *testing.T) {
	t.Parallel()
	flags := []string{"--provider=simulated", "--simulated.profile=" + running.File(t, "profile.yaml", lightProfile), "--probe.interval=300ms", "--inventory.interval=0"}
	e := start(t, append(flags, "--probe.when=idle")...)
	e.ready(t)
	running.Eventually(t, "the contracts of the idle device", func() bool { return e.counts(t).contractRuns("idle", "ok") >= 1 })
	running.Eventually(t, "three runs", func() bool {
		m := e.counts(t)
		return m.runs("busy", "ok") >= 3 && m.runs("untold", "ok") >= 3
	})
	text, m := e.exposition(t)
	checkExposition(t, text)
	var lines []string
	for _, line := range idleLines.FindAllString(text, -1) {
		lines = append(lines, regexp.MustCompile(`(timestamp_seconds\{.*\}) .*`).ReplaceAllString(line, "$1 WHEN"))
	}
	got := strings.Join(lines, "\n") + "\n"
	golden.Check(t, filepath.Join("testdata", "light.prom"), got)
	m.absent(t, "rdma_verbs_call_duration_seconds_count", "device", "busy", "verb", "ibv_modify_qp")
	m.want(t, 0, "rdma_contract_runs_total", "device", "busy", "outcome", "ok")
	_, page := e.get(t, "/")
	for _, text := range []string{"reduced: mpirun (process 4711) holds queue pairs", "Put off: mpirun (process 4711) holds queue pairs", "the kernel does not tell who holds queue pairs"} {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q", text)
		}
	}
	_, api := e.get(t, "/api/v2/status")
	for _, text := range []string{`"reduced":{"reason":"busy"`, `"put_off":{"reason":"busy"`, `"reduced":{"reason":"unknown"`} {
		if !strings.Contains(strings.Join(strings.Fields(api), ""), text) {
			t.Errorf("the JSON lacks %q", text)
		}
	}

	always := start(t, flags...)
	running.Eventually(t, "the contracts of all devices", func() bool {
		m := always.counts(t)
		return m.contractRuns("busy", "ok") >= 1 && m.contractRuns("untold", "ok") >= 1
	})
	always.scrape(t).absent(t, "rdma_probe_light")
}

// The command audit probes and asks peers always, unless it is told otherwise.
func TestLightAudit(t *testing.T) {
	t.Parallel()
	peers := "--peer.file=" + running.File(t, "peers.yml", `[{targets: ["peer.invalid:1"]}]`)
	plain := newAudit(t, lightProfile, nil, "--device=busy", peers).run(t)
	if asked := strings.Contains(plain.stdout, "control_unreachable"); !asked || plain.status != 0 || strings.Contains(plain.stdout, "reduced: ") || strings.Contains(plain.stdout, "put off") {
		t.Errorf("status %d, standard output %s", plain.status, plain.stdout)
	}
	idle := newAudit(t, lightProfile, nil, "--device=busy", "--probe.when=idle", peers).run(t)
	words := strings.Join(strings.Fields(idle.stdout), " ")
	for _, text := range []string{"reduced: mpirun (process 4711) holds queue pairs", "Contracts put off: mpirun (process 4711) holds queue pairs"} {
		if !strings.Contains(words, text) {
			t.Errorf("the report lacks %q", text)
		}
	}
	if idle.status != 0 || strings.Contains(idle.stdout, "control_unreachable") {
		t.Errorf("status %d, standard output %s", idle.status, idle.stdout)
	}
}
