//go:build drill

package drill_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
)

// scenarios are the troubles. Each has one cause, and raises one alert.
func scenarios() []*scenario {
	const many, small = 4, 2
	expected := "expect: {devices: 2, active_ports: 2, mtu: 4096, roce_v2_ipv4: true}\n"
	all := []*scenario{
		{name: "nothing at all", cluster: "healthy", devices: small},
		{
			name: "one port of four is down", cluster: "port", devices: many, alert: "RDMAPortDown",
			state: onNode(1, one(set("ports", []any{port("down", 4096, true)}))),
		},
		{
			name: "all ports of a node are down", cluster: "ports", nodes: []int{1, 1}, devices: small, alert: "RDMANodePortsDown",
			state: onNode(1, each(set("ports", []any{port("down", 4096, true)}))),
		},
		{
			name: "a port is down for 20 s of each minute", cluster: "flapping", devices: small, alert: "RDMAPortFlapping",
			state: onNode(1, one(set("hardware_faults", []string{"flapping"}))),
		},
		{
			name: "a device hangs", cluster: "hung", devices: small, alert: "RDMAProbeFailing", flags: []string{"--probe.timeout=20s"},
			state: onNode(1, one(fault("ibv_create_qp", "hang", true))),
		},
		{
			name: "EPERM on open, on one node", cluster: "eperm", devices: small, alert: "RDMAProbeFailing",
			state: onNode(1, each(fault("ibv_open_device", "errno", "EPERM"))),
		},
		{
			name: "no library of the provider", cluster: "library", devices: small, alert: "RDMAProbeFailing",
			state: onNode(1, each(fault("ibv_open_device", "errno", "ENODEV"))),
		},
		{
			name: "an update breaks a contract on the whole fleet", cluster: "contract", nodes: []int{4}, devices: small, alert: "RDMAContractNewlyViolated", contracts: true,
			state: onNode(0, each(set("fw_version", "20.32.1000"), set("violate", []string{"cq_destroy_busy"}))),
		},
		{
			name: "a pod leaks queue pairs", cluster: "leak", devices: small, alert: "RDMAObjectsGrowing", inventories: 30 * time.Second,
			config: "findings: {growing: {window: 10m}}\n",
			state: func(_ int, since time.Duration, healthy []device) []device {
				// A hundred a minute, of the twenty thousand that are allowed.
				healthy[0]["limits"] = map[string]any{"max_qp": 20000}
				healthy[0]["resources"] = map[string]any{"holders": []any{map[string]any{
					"pid": 4711, "comm": "trainer", "cgroup": "/kubepods/burstable/pod0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0/3f2a1b2c3d4e5f60718293a4b5c6d7e8f90112233445566778899aabbccddeef",
					"objects": map[string]any{"qp": 1000 + 50*int(since/(30*time.Second))},
				}}}
				return healthy
			},
		},
		{
			name: "MTU unlike expected", cluster: "mtu", devices: small, config: expected, alert: "RDMAUnexpectedState",
			state: onNode(1, one(set("ports", []any{port("active", 1024, true)}))),
		},
		{
			name: "no IPv4 address for RoCE v2", cluster: "gid", devices: small, config: expected, alert: "RDMAUnexpectedState",
			state: onNode(1, one(set("ports", []any{port("active", 4096, false)}))),
		},
		{
			name: "memory locks refused", cluster: "memlock", devices: small, alert: "RDMAMemlockRefused",
			state: onNode(1, each(set("registration", map[string]any{"memlock_bytes": 65536}))),
		},
		{
			name: "PFC storm", cluster: "pfc", devices: small, alert: "RDMACongested",
			change: func(since time.Duration, text string) string {
				if since < 0 {
					return text
				}
				// Half of the time paused, and the finding that the exporter makes of it.
				return text + fmt.Sprintf("rdma_port_pfc_paused_seconds_total{device=\"mlx5_0\",port=\"1\",priority=\"3\"} %g\n", since.Seconds()/2) +
					"rdma_finding_info{device=\"mlx5_0\",finding=\"congested\",severity=\"warning\",reason=\"port 1 is paused\",verb=\"\",errno=\"\"} 1\n"
			},
		},
		{
			name: "a device of four is removed", cluster: "removed", devices: many, alert: "RDMADevicesVanished",
			state: func(_ int, _ time.Duration, healthy []device) []device { return healthy[1:] },
		},
		{
			name: "slow PCI", cluster: "pci", devices: small, alert: "RDMAPCIeDegraded",
			state: onNode(1, one(set("hardware_faults", []string{"slow_pci"}))),
		},
		{
			name: "a leaf switch fails: 10 nodes lose the same rail", cluster: "leaf", nodes: []int{10, 2}, devices: small, alert: "RDMAFleetFailing",
			state: func(node int, _ time.Duration, healthy []device) []device {
				if node == 0 {
					healthy[1]["ports"] = []any{port("down", 4096, true)}
				}
				return healthy
			},
		},
		{
			name: "a leaf switch of a large fleet fails: 10 of 205 nodes", cluster: "rail", nodes: []int{10, 195}, devices: small, alert: "RDMARailDown",
			state: onNode(1, one(set("ports", []any{port("down", 4096, true)}))),
		},
		{
			name: "a reboot: ports train for 90 s", cluster: "reboot", devices: small,
			change: func(since time.Duration, text string) string {
				if since < 0 {
					return text
				}
				return value("rdma_exporter_boot_time_seconds").ReplaceAllString(text, "${1}"+strconv.FormatInt(time.Now().Add(-since).Unix(), 10))
			},
			state: func(_ int, since time.Duration, healthy []device) []device {
				if since < 90*time.Second {
					return each(set("ports", []any{port("init", 4096, true)}))(healthy)
				}
				return healthy
			},
			act: func(t testing.TB, n *node) {
				if !n.acted {
					n.acted = true
					n.exporter.Stop(t)
					n.launch(t)
				}
			},
		},
		{
			name: "maintenance: ports are down for 5 minutes of 10", cluster: "drained", devices: small, prepare: maintained, act: maintain(10 * time.Minute),
			state: func(_ int, since time.Duration, healthy []device) []device {
				if since > 30*time.Second && since < 5*time.Minute {
					return each(set("ports", []any{port("down", 4096, true)}))(healthy)
				}
				return healthy
			},
		},
		{
			name: "maintenance that expires after 5 minutes: ports stay down", cluster: "expired", devices: small, prepare: maintained, act: maintain(5 * time.Minute),
			alert: "RDMANodePortsDown",
			state: func(_ int, since time.Duration, healthy []device) []device {
				if since > 30*time.Second {
					return each(set("ports", []any{port("down", 4096, true)}))(healthy)
				}
				return healthy
			},
		},
		{
			name: "two clusters: the sick one", cluster: "east", devices: small, alert: "RDMAPortDown",
			state: onNode(1, one(set("ports", []any{port("down", 4096, true)}))),
		},
		{name: "two clusters: the healthy one, of equal names", cluster: "west", devices: small},
		{
			name: "20 nodes cannot open their devices", cluster: "fleet", nodes: []int{20}, devices: small, alert: "RDMAFleetFailing",
			state: onNode(0, each(fault("ibv_open_device", "errno", "EPERM"))),
		},
	}
	only := regexp.MustCompile("^(" + cmp.Or(os.Getenv("DRILL_ONLY"), ".*") + ")$")
	for _, s := range all {
		if s.nodes == nil {
			s.nodes = []int{1}
		}
	}
	return slices.DeleteFunc(all, func(s *scenario) bool { return !only.MatchString(s.cluster) })
}

// maintained and maintain have a node be under maintenance for some time after the break.
func maintained(n *node) {
	n.serve = append(n.serve, "--maintenance.file="+filepath.Join(n.dir, "maintenance"))
}

func maintain(lasts time.Duration) func(testing.TB, *node) {
	return func(t testing.TB, n *node) {
		if !n.acted {
			n.acted = true
			n.write(t, "maintenance", time.Now().Add(lasts).UTC().Format(time.RFC3339)+" a new cable\n")
		}
	}
}

// value finds the value of a metric without labels.
func value(metric string) *regexp.Regexp { return regexp.MustCompile(`(?m)^(` + metric + ` ).*`) }

// onNode changes the devices of a node by its number from 1, or of all nodes if that is 0.
func onNode(number int, change func([]device) []device) func(int, time.Duration, []device) []device {
	return func(node int, _ time.Duration, healthy []device) []device {
		if number == 0 || node == number-1 {
			return change(healthy)
		}
		return healthy
	}
}

// one changes the last device, and each all.
func one(changes ...func(device)) func([]device) []device {
	return func(all []device) []device {
		for _, change := range changes {
			change(all[len(all)-1])
		}
		return all
	}
}

func each(changes ...func(device)) func([]device) []device {
	return func(all []device) []device {
		for i := range all {
			one(changes...)(all[:i+1])
		}
		return all
	}
}

// set sets a key of a device, and fault has a verb misbehave.
func set(key string, value any) func(device) { return func(d device) { d[key] = value } }

func fault(verb, action string, value any) func(device) {
	return set("faults", []any{map[string]any{"verb": verb, action: value}})
}
