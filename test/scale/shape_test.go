//go:build scale

package scale_test

import (
	"fmt"
	"strconv"
	"strings"

	"rdma_exporter/collector"
	"rdma_exporter/test/running"
)

// device is a kind of simulated device.
type device struct {
	// like is the device of the built-in profile that it takes all else from.
	like string
	// active and down are how many ports it has of each state.
	active, down int
	vectors      int
	// noSRQ is true if it has no SRQs.
	noSRQ bool
	// owners are the processes that hold objects of every type on it, the same ones as
	// on other devices, each with a limit of the RDMA controller.
	owners int
}

// slowVector is the vector of the built-in profile on which notification takes longer.
const slowVector = 5

// mostVectors is more vectors than any device has, so that all are used.
const mostVectors = 512

// shape is a host with simulated devices, and how its exporter is configured.
type shape struct {
	name    string
	devices []device
	// noContracts, noInventories, noHardware, noMeasurements and noOwnMetrics tell what is
	// switched off.
	noContracts, noInventories, noHardware, noMeasurements, noOwnMetrics bool
	// everything tells that all collectors are on.
	everything bool
}

// namedOwners limits the owners that the exporter names for each device and type.
const namedOwners = 10

// times returns n devices of a kind.
func times(n int, d device) []device {
	all := make([]device, n)
	for i := range all {
		all[i] = d
	}
	return all
}

// adapter is like one port of a hardware adapter.
func adapter(vectors int) device {
	return device{like: "sim_ib0", active: 1, vectors: vectors, owners: 2}
}

// shapes returns the hosts whose number of series is computed, and counted.
func shapes() []shape {
	twoPorts := device{like: "sim_ib0", active: 1, down: 1, vectors: 64, owners: 4}
	return []shape{
		{name: "64 devices, 64 vectors, without contracts", devices: times(64, adapter(64)), noContracts: true},
		{name: "1 device, 300 vectors", devices: []device{{like: "sim_rxe0", active: 1, vectors: 300}}},
		{name: "1 device, 2 vectors", devices: []device{{like: "sim_rxe0", active: 1, vectors: 2, owners: 2}}},
		{name: "8 devices, 16 vectors", devices: times(8, adapter(16))},
		{name: "8 devices, 64 vectors", devices: times(8, adapter(64))},
		{name: "2 devices, 2 ports each of which one is down, 64 vectors", devices: times(2, twoPorts)},
		{name: "1 device, 30 owners of which 10 are named", devices: []device{{like: "sim_rxe0", active: 1, vectors: 2, owners: 30}}},
		{
			name: "4 devices that lack something",
			devices: []device{
				{like: "sim_siw0", active: 1, vectors: 4, owners: 1},
				{like: "sim_rxe0", down: 1, vectors: 4},
				{like: "sim_rxe0", active: 1, vectors: 4, noSRQ: true},
				{like: "sim_ib0", active: 3, vectors: 4},
			},
		},
		{name: "8 devices, 16 vectors, probes of sizes alone", devices: times(8, adapter(16)), noContracts: true, noInventories: true, noHardware: true, noMeasurements: true, noOwnMetrics: true},
		{name: "2 devices, without measurements", devices: times(2, adapter(16)), noMeasurements: true},
		{name: "2 devices, every collector", devices: times(2, adapter(16)), everything: true},
		{name: "2 devices, without inventories", devices: times(2, adapter(16)), noInventories: true},
	}
}

// flags returns the flags of the exporter beside the profile. It is in a hurry, and its
// runs are not: one that is killed adds series.
func (s shape) flags() []string {
	flags := []string{
		"--provider=simulated", "--web.listen-address=127.0.0.1:0",
		"--probe.concurrency=4", "--notification.vectors=" + strconv.Itoa(mostVectors),
	}
	for flag, on := range map[string]bool{
		withoutContracts:           s.noContracts,
		withoutInventories:         s.noInventories,
		withoutHardware:            s.noHardware,
		withoutOwn:                 s.noOwnMetrics,
		"--notification.samples=0": s.noMeasurements,
		"--notification.samples=2": !s.noMeasurements,
	} {
		if on {
			flags = append(flags, flag)
		}
	}
	if s.everything {
		flags = append(flags, further()...)
	}
	if !s.noInventories {
		flags = append(flags, "--inventory.interval=10m")
	}
	return running.Unhurried(append(flags, "--probe.interval=10m")...)
}

// profile returns the simulated devices.
func (s shape) profile() string {
	var b strings.Builder
	b.WriteString("devices:\n")
	for i, d := range s.devices {
		fmt.Fprintf(&b, "  - name: sim%d\n    like: %s\n    completion_vectors: %d\n", i, d.like, d.vectors)
		if d.like != "sim_siw0" {
			b.WriteString("    ports:\n")
			for port := 1; port <= d.active+d.down; port++ {
				state := "active"
				if port > d.active {
					state = "down"
				}
				fmt.Fprintf(&b, "      - {number: %d, state: %s, link_layer: InfiniBand, lid: %d, active_mtu: 4096, pkeys: 1, gids: [{index: 0, gid: \"fe80::%x:%x\", type: IB}]}\n", port, state, 2*i+port, i+1, port)
			}
		}
		var limits []string
		if d.noSRQ {
			limits = append(limits, "max_srq: 0")
		}
		if len(limits) > 0 {
			fmt.Fprintf(&b, "    limits: {%s}\n", strings.Join(limits, ", "))
		}
		b.WriteString("    resources:\n      holders:")
		if d.owners == 0 {
			b.WriteString(" []")
		}
		b.WriteByte('\n')
		for n := range d.owners {
			// No two hold the same number, so that it is clear who are the largest.
			fmt.Fprintf(&b, "        - {pid: %d, comm: owner%d, cgroup: /jobs/%d, rdma_max: {hca_handle: 8, hca_object: 5000}, objects: {", 1000+n, n, n)
			for i, kind := range []string{"ctx", "pd", "cq", "qp", "mr", "srq", "cm_id"} {
				if i > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, "%s: %d", kind, 1+d.owners-n)
			}
			b.WriteString("}}\n")
		}
	}
	return b.String()
}

// unkept returns how many contracts a device does not keep, which is known of its driver,
// or cannot be judged on it although it offers what they are about.
func (d device) unkept() int {
	n := 0
	if d.like == "sim_rxe0" {
		n = 2
		if d.noSRQ {
			n-- // One of those is about SRQs.
		}
	}
	if d.active == 0 {
		n += 5
	}
	return n
}

// further returns the flags that switch on what is off by default.
func further() []string {
	var flags []string
	for _, p := range collector.Parts() {
		if !p.On {
			flags = append(flags, "--collector."+p.Name)
		}
	}
	return flags
}

// countHardware adds what the kernel shows of the adapter, by symbol.
func (d device) countHardware(c map[string]int) {
	ports := d.active + d.down
	switch d.like {
	case "sim_siw0": // whose driver counts nothing
		c["n"] += ports
	case "sim_rxe0":
		c["c"] += 8 * ports
		c["w"] += 9 * ports
	default:
		c["b"]++
		c["c"] += 8 * ports
		c["w"] += 19 * ports
		c["v"] += min(d.vectors, 64)
	}
}

// counts returns what the symbols of the formula stand for, by symbol.
func (s shape) counts(verbs verbSets) map[string]int {
	c := map[string]int{"D": len(s.devices)}
	processes := 0
	for _, d := range s.devices {
		types, loopback := 3, d.active
		if d.like == "sim_siw0" {
			types, loopback = 1, 0 // It connects in another way.
			c["J"]++               // A size above its limit.
		}
		c["P"] += d.active + d.down
		c["g"] += d.active + d.down // There is one GID on each.
		d.countHardware(c)
		c["T"] += types
		c["K"] += 4 - types
		if d.noSRQ {
			c["K"]++
		} else {
			c["S"]++
		}
		if !s.noMeasurements {
			c["F"]++
			c["L"] += loopback
			c["K"] += d.active + d.down - loopback
			c["V"] += min(d.vectors, 256)
		}
		called := verbs.called(s, d, loopback)
		c["B"] += len(called)
		for _, verb := range verbs[calledControl] {
			if called[verb] {
				c["C"]++
			}
		}
		if d.down > 0 {
			c["N"]++ // That is a finding.
		}
		if d.like == "sim_ib0" && d.vectors > slowVector && !s.noMeasurements {
			c["N"]++ // So is that.
		}
		if d.like == "sim_rxe0" && !d.noSRQ {
			c["W"] += 3
		}
		if !s.noContracts {
			c["Q"] += d.unkept()
		}
		if !s.noInventories {
			named := min(d.owners, namedOwners)
			c["O"] += 7 * named
			if named < d.owners {
				c["O"] += 7
			}
			c["G"] += named
			if d.owners > 0 {
				c["X"]++
			}
			processes = max(processes, named)
		}
	}
	c["M"] = processes
	return c
}
