package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/bench"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs/simulated/simulatedtest"
)

// servePair starts our exporter on simulated devices, and node_exporter. It returns when
// each device was probed, checked and inventoried. The verbs take no time: a child that
// waits in place of a device uses more CPU than the verbs.
func servePair(t *testing.T, devices int, flags, theirFlags []string) (ours, theirs *bench.Server) {
	t.Helper()
	profile := simulatedtest.Scaled(devices, "completion_vectors: 2", "default_latency: 0s", "latency: {}")
	ours = bench.Serve(t, bench.Program(t, running.EnvBinary), append([]string{
		"--provider=simulated", "--simulated.profile=" + running.File(t, "profile.yaml", profile), "--contract.interval=24h",
	}, flags...)...)
	theirs = bench.Serve(t, bench.Program(t, "RDMA_NODE_EXPORTER"), theirFlags...)
	running.Within(t, 20*time.Minute, fmt.Sprintf("%d devices to be probed and checked", devices), func() bool {
		values := ours.Values(t)
		for _, kind := range []string{"probe", "contract", "inventory"} {
			if bench.Sum(values, "rdma_"+kind+"_runs_total") < float64(devices) {
				return false
			}
		}
		return true
	})
	time.Sleep(time.Second)
	return ours, theirs
}

func addMemory(t *testing.T, table *table, situation string, ours, theirs *bench.Server) {
	t.Helper()
	for _, m := range []struct{ quantity, key string }{
		{"resident, MiB", "VmRSS"}, {"anonymous, MiB", "RssAnon"}, {"files, MiB", "RssFile"},
	} {
		table.add(situation, m.quantity, ours.Memory(t, m.key), theirs.Memory(t, m.key))
	}
}

// TestScrapes measures scrapes of both exporters, in turns.
func TestScrapes(t *testing.T) {
	table := all.table("Scrapes, simulated devices on the machine itself", "node_exporter, all its defaults")
	for _, devices := range []int{8, 64} {
		situation := fmt.Sprintf("%d devices", devices)
		for range *runs {
			ours, theirs := servePair(t, devices, []string{"--probe.interval=1h", "--inventory.interval=1h", "--probe.concurrency=16"}, nil)
			servers := []*bench.Server{ours, theirs}
			var costs [2][]cost
			var sent, series [2]float64
			const turns, scrapes = 5, 100
			for turn := range turns {
				for i, s := range servers {
					before, began := s.CPU(t), time.Now()
					for range scrapes {
						sent[i] = float64(s.Scrape(t))
					}
					if turn > 0 { // By then, each has allocated what it needs.
						costs[i] = append(costs[i], cost{time.Since(began) / scrapes, (s.CPU(t) - before) / scrapes})
					}
					series[i] = float64(len(s.Values(t)))
				}
			}
			table.add(situation, "series", series[0], series[1])
			table.add(situation, "sent for a scrape, KiB", sent[0]/1024, sent[1]/1024)
			table.addCosts(situation, costs[0], costs[1])
			addMemory(t, table, situation, ours, theirs)
			ours.Stop(t)
			theirs.Stop(t)
		}
	}
}

// infiniband leaves only the infiniband collector of node_exporter, which reads a tree of
// files.
func infiniband(root string) []string {
	return []string{"--path.sysfs=" + root, "--collector.disable-defaults", "--collector.infiniband"}
}

// TestIdle measures the CPU time of exporters with default intervals that are scraped every
// 15 seconds.
func TestIdle(t *testing.T) {
	table := all.table("CPU over time, simulated devices on the machine itself", "node_exporter")
	for _, devices := range []int{8, 64} {
		situation := fmt.Sprintf("%d devices, 2 vectors", devices)
		for range *runs {
			ours, theirs := servePair(t, devices, nil, infiniband(sysfsOf(t, devices)))
			before, began := ours.Values(t), time.Now()
			own, children, other := ours.CPU(t), ours.ChildrenCPU(t), theirs.CPU(t)
			const interval = 15 * time.Second
			for next := began.Add(interval); next.Sub(began) <= *idleTime; next = next.Add(interval) {
				time.Sleep(time.Until(next))
				ours.Scrape(t)
				theirs.Scrape(t)
			}
			took := time.Since(began)
			own, children, other = ours.CPU(t)-own, ours.ChildrenCPU(t)-children, theirs.CPU(t)-other
			after := ours.Values(t)
			share := func(d time.Duration) float64 { return 100 * d.Seconds() / took.Seconds() }
			minutely := func(name string) float64 { return (bench.Sum(after, name) - bench.Sum(before, name)) / took.Minutes() }
			table.add(situation, "CPU of the exporter's process, % of one core", share(own), share(other))
			table.add(situation, "CPU of its children, % of one core", share(children))
			table.add(situation, "CPU in all, % of one core", share(own+children), share(other))
			table.add(situation, "probe runs, a minute", minutely("rdma_probe_runs_total"))
			table.add(situation, "inventories, a minute", minutely("rdma_inventory_runs_total"))
			addMemory(t, table, situation, ours, theirs)
			ours.Stop(t)
			theirs.Stop(t)
		}
	}
}

// TestHardware measures the child that reads the hardware of all devices next to a scrape
// of node_exporter, which reads the same files.
func TestHardware(t *testing.T) {
	table := all.table("Hardware reading, files on the machine itself", "node_exporter")
	for _, devices := range []int{8, 64} {
		root := sysfsOf(t, devices)
		var names []string
		for i := range devices {
			names = append(names, fmt.Sprintf("mlx5_%d", i))
		}
		input, err := json.Marshal(map[string]any{
			"request":  map[string]any{"hardware": map[string]any{"devices": names}},
			"settings": map[string]any{"provider": "libibverbs", "hardware": map[string]any{"sysfs": root, "budget": time.Minute}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range *runs {
			node := bench.Serve(t, bench.Program(t, "RDMA_NODE_EXPORTER"), infiniband(root)...)
			var ours, theirs []cost
			for round := range 41 {
				o := run(t, string(input), bench.Program(t, running.EnvBinary), "hardware")
				before, began := node.CPU(t), time.Now()
				node.Scrape(t)
				if round > 0 {
					ours, theirs = append(ours, o), append(theirs, cost{time.Since(began), node.CPU(t) - before})
				}
			}
			node.Stop(t)
			table.addCosts(fmt.Sprintf("%d devices", devices), ours, theirs)
		}
	}
}

// The counters in sysfs of a port of an mlx5 device.
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

// sysfsOf writes files like those of sysfs for n mlx5 devices with one port, and returns
// their root. They are cheaper to read than sysfs, whose content the kernel makes.
func sysfsOf(t *testing.T, n int) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"board_id": "MT_0000000838", "fw_ver": "28.39.1002", "hca_type": "MT4129", "node_guid": "ffff:ffff:ffff:0001",
		"ports/1/link_layer": "InfiniBand", "ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp", "ports/1/rate": "400 Gb/sec (4X NDR)",
	}
	for _, counter := range strings.Fields(portCounters) {
		files["ports/1/counters/"+counter] = "1234567890"
	}
	for _, counter := range strings.Fields(hardwareCounters) {
		files["ports/1/hw_counters/"+counter] = "12345"
	}
	for i := range n {
		for name, content := range files {
			file := filepath.Join(root, "class/infiniband", fmt.Sprintf("mlx5_%d", i), name)
			running.Check(t, os.MkdirAll(filepath.Dir(file), 0o755))
			running.Check(t, os.WriteFile(file, []byte(content+"\n"), 0o600))
		}
	}
	return root
}
