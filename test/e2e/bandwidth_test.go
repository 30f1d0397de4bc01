package e2e_test

import (
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

func TestBandwidth(t *testing.T) {
	t.Parallel()
	const rate = "    bandwidth_bytes_per_second: 12e9\n"
	for _, c := range []struct {
		name, like, keys string
		args             []string
		status           int
		want             string // in the output, or for status 2 in the errors
	}{
		{"all is well", "sim_ib0", idle + rate, []string{"--yes"}, 0, "sim0     1     0"},
		{"JSON", "sim_ib0", idle + rate, []string{"--yes", "--json", "--device=sim0"}, 0, `"bytes_per_second": 12000000000`},
		{"slow", "sim_ib0", idle + strings.Replace(rate, "12e9", "5e9", 1), []string{"--yes"}, 1, "sim0: bandwidth_low: port 1 moves 40 Gb/s of 100 Gb/s, its rate; "},
		{"used anyway", "sim_ib0", used + rate, []string{"--yes", "--anyway"}, 0, "sim0     1     0"},
		{"without loopback", "sim_siw0", idle, []string{"--yes"}, 0, "sim0: not measured: iWARP"},
		{"crashing", "sim_ib0", idle + rate + "    faults: [{verb: ibv_create_qp, crash: true}]\n", []string{"--yes"}, 1, "sim0: failed: "},
		{"unconfirmed", "sim_ib0", idle + rate, nil, 2, "--yes"},
		{"used", "sim_ib0", used + rate, []string{"--yes"}, 2, "trainer (process 4711) holds queue pairs"},
		{"no such device", "sim_ib0", idle + rate, []string{"--yes", "--device=sim"}, 2, "0 devices"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			profile := running.File(t, "profile.yaml", "devices:\n  - name: sim0\n    like: "+c.like+"\n"+c.keys)
			r := invoke(t, binary, t.TempDir(), append([]string{"bandwidth", "--provider=simulated", "--simulated.profile=" + profile}, c.args...)...)
			if r.status != c.status || !strings.Contains(r.stdout+r.stderr, c.want) || (r.stderr != "") != (c.status == 2) {
				t.Errorf("status %d, want %d and %q: %s%s", r.status, c.status, c.want, r.stdout, r.stderr)
			}
		})
	}
}
