package e2e_test

import (
	"strings"
	"testing"
	"unicode"

	"rdma_exporter/test/running"
)

// What a device and the programs on it are called is no way into a terminal or a log by a
// label: nothing of a child's report has a control character there.
func TestOddNames(t *testing.T) {
	t.Parallel()
	profile := running.File(t, "odd.yaml", `devices:
  - name: odd
    like: sim_rxe0
    fw_version: "2\x1b[31m\n0"
    resources:
      holders:
        - {pid: 4711, comm: "a\x1b]0;b\ac", cgroup: "/d\x1b[2J\re", objects: {qp: 3}}
`)
	e := start(t, "--provider=simulated", "--simulated.profile="+profile)
	e.ready(t)
	e.inventoried(t, "odd")
	text := e.text(t)
	for _, want := range []string{"2\ufffd[31m 0", "a\ufffd]0;b\ufffdc"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no label %q:\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		// In labels a newline is written as \n.
		if line = strings.TrimSuffix(line, "\n"); strings.ContainsFunc(line, unicode.IsControl) || strings.Contains(line, `\n`) {
			t.Errorf("a line has a control character: %q", line)
		}
	}
}
