//go:build vm

package softroce

import (
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// devinfo is what ibv_devinfo says of a device, by the name that it gives each
// attribute.
type devinfo map[string]string

// askDevinfo asks the witness. Of the ports, it reads the state of the only one.
func askDevinfo(t *testing.T, device string) devinfo {
	t.Helper()
	info := make(devinfo)
	for line := range strings.Lines(running.Command(t, "ibv_devinfo", "-v", "-d", device)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if _, twice := info[key]; !ok || twice {
			continue
		}
		value = strings.TrimSpace(value)
		// A number in parentheses repeats the word before it.
		if word, _, ok := strings.Cut(value, " ("); ok {
			value = word
		}
		info[key] = value
	}
	if info["hca_id"] != device {
		t.Fatalf("ibv_devinfo tells of %q, not of %s", info["hca_id"], device)
	}
	return info
}

// differing are the limits that the exporter tells otherwise than the witness,
// with what it makes of the witness's number.
var differing = map[string]func(uint64) uint64{
	// A report holds limits as int64, and rxe says 2^64 − 1, for no limit.
	"max_mr_size": func(n uint64) uint64 { return min(n, 1<<63-1) },
}

// What the exporter says of a device agrees with an independent witness.
func TestAgreesWithDevinfo(t *testing.T) {
	e := start(t, options{})
	m := e.rounds(1)
	for _, device := range []string{active, down} {
		t.Run(device, func(t *testing.T) {
			info := askDevinfo(t, device)

			samples := m.find("rdma_device_limit", "device", device)
			told := make(map[string]bool)
			for _, s := range samples {
				limit := label(s, "limit")
				told[limit] = true
				want, err := strconv.ParseUint(info[limit], 0, 64)
				if err != nil {
					t.Errorf("the witness says %q of limit %s", info[limit], limit)
					continue
				}
				if change := differing[limit]; change != nil {
					t.Logf("%s is %v, and %d by the witness", limit, number(s), want)
					want = change(want)
				}
				if number(s) != float64(want) {
					t.Errorf("limit %s is %v, and %d by the witness", limit, number(s), want)
				}
			}
			for _, limit := range []string{
				"max_qp", "max_cq", "max_cqe", "max_qp_wr", "max_sge", "max_srq", "max_srq_wr", "max_srq_sge",
				"max_mr", "max_pd", "max_mw", "max_ah", "max_mcast_grp",
			} {
				if !told[limit] {
					t.Errorf("no limit %s", limit)
				}
			}
			t.Logf("%d limits agree", len(samples))
			vectors := running.Must(strconv.ParseFloat(info["num_comp_vectors"], 64))(t)
			m.is(t, vectors, "rdma_device_completion_vectors", "device", device)
			t.Logf("%v completion vectors", vectors)

			m.is(t, 1, "rdma_device_info", "device", device, "provider", "libibverbs",
				"transport", info["transport"], "fw_version", info["fw_ver"], "vendor_id", info["vendor_id"],
				"vendor_part_id", info["vendor_part_id"], "hw_version", info["hw_ver"], "node_guid", info["node_guid"])

			mtu := running.Must(strconv.ParseFloat(info["active_mtu"], 64))(t)
			m.is(t, mtu, "rdma_port_active_mtu_bytes", "device", device, "port", "1")

			state := strings.ToLower(strings.TrimPrefix(info["state"], "PORT_"))
			for _, s := range m.find("rdma_port_state_id", "device", device) {
				if got := number(s); label(s, "port") != "1" || got != map[string]float64{"down": portDown, "active": portActive}[state] {
					t.Errorf("the state of port %s is %v; the witness says %s of port 1", label(s, "port"), got, state)
				}
			}
			if n := len(m.find("rdma_port_state_id", "device", device)); n != 1 {
				t.Errorf("%d series of the states of ports, want 1", n)
			}
		})
	}
}
