//go:build vm

package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/verbs/simulated/simulatedtest"
)

const sysfs = "/sys/class/infiniband"

// addDevices adds Soft-RoCE devices until there are n. The first, rxe0, and the
// second, whose port is down, are those of the virtual machine.
func addDevices(t *testing.T, n int) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(sysfs, "rxe1")); err != nil {
		t.Fatalf("no Soft-RoCE device (%v): run this with -exec test/vm/run", err)
	}
	for i := range n {
		name, netdev := fmt.Sprintf("rxe%d", i), fmt.Sprintf("peer%d", i)
		if _, err := os.Stat(filepath.Join(sysfs, name)); err == nil {
			continue
		}
		for _, command := range []string{
			fmt.Sprintf("ip link add %s type veth peer name %so", netdev, netdev),
			fmt.Sprintf("ip address add 10.78.%d.1/24 dev %s", i, netdev),
			fmt.Sprintf("ip link set %so up", netdev),
			fmt.Sprintf("ip link set %s up", netdev),
			fmt.Sprintf("rdma link add %s type rxe netdev %s", name, netdev),
		} {
			words := strings.Fields(command)
			if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", command, err, out)
			}
		}
	}
}

// simulatedProfile writes a profile of n devices with so many completion vectors,
// and returns the name of its file. Their verbs take no time: to wait in the place of a
// device costs a child more than the verbs that it calls.
func simulatedProfile(t *testing.T, n, vectors int) string {
	t.Helper()
	text := simulatedtest.Scaled(n, fmt.Sprint("completion_vectors: ", vectors), "default_latency: 0s", "latency: {}")
	file := filepath.Join(t.TempDir(), "profile.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The counters that a port of an mlx5 device has in sysfs.
const (
	portCounters = `VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors
		multicast_rcv_packets multicast_xmit_packets port_rcv_constraint_errors port_rcv_data port_rcv_discards port_rcv_errors
		port_rcv_packets port_rcv_remote_physical_errors port_rcv_switch_relay_errors port_xmit_constraint_errors port_xmit_data
		port_xmit_discards port_xmit_packets port_xmit_wait symbol_error unicast_rcv_packets unicast_xmit_packets`
	hardwareCounters = `duplicate_request implied_nak_seq_err lifespan local_ack_timeout_err np_cnp_sent np_ecn_marked_roce_packets
		out_of_buffer out_of_sequence packet_seq_err req_cqe_error req_cqe_flush_error req_remote_access_errors
		req_remote_invalid_request resp_cqe_error resp_cqe_flush_error resp_local_length_error resp_remote_access_errors
		rnr_nak_retry_err roce_adp_retrans roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans
		rp_cnp_handled rp_cnp_ignored rx_atomic_requests rx_icrc_encapsulated rx_read_requests rx_write_requests`
)

// sysfsOf writes a tree of files such as sysfs has for n devices of mlx5, of one port
// each, and returns its root. To read such a file costs less than to read one of
// sysfs, where the kernel and mostly the device make its content.
func sysfsOf(t *testing.T, n int) string {
	t.Helper()
	root := t.TempDir()
	write := func(content string, path ...string) {
		file := filepath.Join(append([]string{root, "class/infiniband"}, path...)...)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		device := fmt.Sprintf("mlx5_%d", i)
		write("MT_0000000838", device, "board_id")
		write("28.39.1002", device, "fw_ver")
		write("MT4129", device, "hca_type")
		write("ffff:ffff:ffff:0001", device, "node_guid")
		write("InfiniBand", device, "ports/1/link_layer")
		write("4: ACTIVE", device, "ports/1/state")
		write("5: LinkUp", device, "ports/1/phys_state")
		write("400 Gb/sec (4X NDR)", device, "ports/1/rate")
		for _, counter := range strings.Fields(portCounters) {
			write("1234567890", device, "ports/1/counters", counter)
		}
		for _, counter := range strings.Fields(hardwareCounters) {
			write("12345", device, "ports/1/hw_counters", counter)
		}
	}
	return root
}
