//go:build vm

package softroce

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Any user can read the exporter's file where this puts it.
func publicBinary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "softroce")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(exporterFile)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	path := filepath.Join(dir, "rdma_exporter")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// The whole exporter runs as nobody, with no capability and hardly any locked
// memory. What works then works; what cannot is told, once.
func TestWithoutPrivileges(t *testing.T) {
	program := publicBinary(t)
	for _, memlock := range []int{64 << 10, 0} {
		t.Run(fmt.Sprintf("memlock %d", memlock), func(t *testing.T) {
			e := start(t, options{binary: program, flags: []string{"--contract.interval=1h", seldom}, wrap: []string{
				"prlimit", fmt.Sprintf("--memlock=%d:%d", memlock, memlock),
				"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs",
			}})
			status := output(t, "cat", fmt.Sprintf("/proc/%d/status", e.pid()))
			for _, line := range []string{`Uid:\t65534\t65534\t65534\t65534`, `Gid:\t65534\t65534\t65534\t65534`, `CapPrm:\t0+`, `CapEff:\t0+`, `CapBnd:\t0+`, `CapAmb:\t0+`, `NoNewPrivs:\t1`} {
				if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(status) {
					t.Errorf("the exporter's status is not %s:\n%s", line, status)
				}
			}
			limits := output(t, "cat", fmt.Sprintf("/proc/%d/limits", e.pid()))
			if !regexp.MustCompile(fmt.Sprintf(`(?m)^Max locked memory +%d +%d +bytes`, memlock, memlock)).MatchString(limits) {
				t.Errorf("the exporter's limits:\n%s", limits)
			}
			e.rounds(3)
			m := e.until("the contracts to be judged", func(m metrics) bool {
				return len(m.find("rdma_contract_duration_seconds")) == 2
			})
			for _, device := range []string{active, down} {
				told(t, m, device)
				t.Logf("%s: %v runs, %v ok; skipped %v; failed calls %v", device, m.runs(device), m.runs(device, "ok"),
					m.find("rdma_probe_skipped", "device", device), m.find("rdma_verbs_errors_total", "device", device))
			}
			// The inventory leaves nothing unsaid either.
			if n := m.sum("rdma_contract_verdicts", "device", active) - m.sum("rdma_contract_verdicts", "device", active, "verdict", "skipped"); n != float64(contracts) {
				t.Errorf("%v contracts were judged", n)
			}
			// rxe pins no memory for its queues, only for messages, and needs no privilege but for raw
			// packets, which it does not have anyway.
			m.allOK(t, active)
			m.allOK(t, down)
			if len(m.find("rdma_probe_skipped", "device", active, "subject", "raw_packet")) != 1 {
				t.Error("nothing tells that raw packet QPs were skipped")
			}
			e.terminate()
			saidOnce(t, e.log.String())
		})
	}
}

// told makes sure that each probe either succeeded or is said to have failed or
// been skipped.
func told(t *testing.T, m metrics, device string) {
	t.Helper()
	for _, probe := range []string{"cq", "comp_channel", "srq", "qp", "mr", "notification"} {
		success := m.find("rdma_probe_success", "device", device, "probe", probe)
		skipped := m.find("rdma_probe_skipped", "device", device, "probe", probe, "subject", "")
		if probe == "mr" { // for each kind of memory there is a reason
			skipped = m.find("rdma_probe_skipped", "device", device, "probe", probe)
		}
		if len(success)+len(skipped) == 0 {
			t.Errorf("no metric tells how probe %s went on %s", probe, device)
		}
	}
}

// saidOnce makes sure that the log has each message about each device once, in
// whatever words the rest of the line is.
func saidOnce(t *testing.T, log string) {
	t.Helper()
	said := make(map[string]string)
	for line := range strings.Lines(log) {
		if strings.Contains(line, "violates a contract") {
			continue // one for each
		}
		fields := regexp.MustCompile(`(level|msg|device)=("[^"]*"|\S+)`).FindAllString(line, -1)
		key := strings.Join(fields, " ")
		if key == "" {
			t.Errorf("a line of another form: %s", line)
		}
		if before, twice := said[key]; twice {
			t.Errorf("said twice:\n%s%s", before, line)
		}
		said[key] = line
	}
	t.Logf("the log has %d lines:\n%s", len(said), log)
}
