package health

import (
	"fmt"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Problem is a problem of the host rather than of a device.
type Problem struct {
	Kind   ProblemKind `json:"kind"`
	Health Health      `json:"health"`
	// Message may contain words from outside.
	Message string `json:"message"`
	// Action says what to do.
	Action string `json:"action"`
}

// ProblemKind is the kind of a problem.
type ProblemKind string

// The kinds of problem.
const (
	ProblemNotListed ProblemKind = "not_listed_yet"
	ProblemDiscovery ProblemKind = "discovery_failed"
	ProblemNoDevices ProblemKind = "no_devices"
	// ProblemPorts means that fewer ports are active than --expect-active-ports.
	ProblemPorts ProblemKind = "too_few_active_ports"
)

func problemOf(s *state.Snapshot, c *Config) *Problem {
	switch {
	case s == nil:
		return &Problem{
			Kind: ProblemNotListed, Health: Unknown,
			Message: "The RDMA devices have not been listed yet.",
			Action:  "Wait a few seconds after the start. If it persists, check the exporter's log.",
		}
	case s.DiscoveryError != "":
		return &Problem{
			Kind: ProblemDiscovery, Health: Critical,
			Message: "The RDMA devices could not be listed: " + text.Clean(s.DiscoveryError),
			Action: "Check that the exporter's user can read the list: `ls -l /sys/class/infiniband`. " +
				"In a container, mount /sys of the host; if it is mounted elsewhere, set `--path.sysfs`. " +
				"Until then the devices show their old state, and new ones are missing.",
		}
	case len(s.Devices) > 0:
		return problemPorts(s, c.ActivePorts)
	case s.Simulated():
		return &Problem{
			Kind: ProblemNoDevices, Health: Warning,
			Message: "No simulated device was found.",
			Action:  "Check whether `--device.include` and `--device.exclude` exclude all of them, and what `--simulated.profile` describes.",
		}
	default:
		return &Problem{
			Kind: ProblemNoDevices, Health: Warning,
			Message: "No RDMA device was found.",
			Action: "See what the host has: `ls /sys/class/infiniband` and `rdma link`. " +
				"If nothing is listed, check that the adapter is there (`lspci`) and its driver loaded: `modprobe mlx5_ib`, or irdma, bnxt_re, efa and so on; `dmesg` says why the driver did not take the adapter. " +
				"If the host has devices and the exporter runs in a container, mount /sys and /dev/infiniband of the host. " +
				"If `rdma system show` says `netns exclusive`, move the device into the exporter's network namespace: `rdma dev set DEVICE netns NAME`. " +
				"`--device.include` and `--device.exclude` may exclude all of them. " +
				"To try the exporter without a device: `--provider=simulated`.",
		}
	}
}

func portsOf(s *state.Snapshot) (all, active int) {
	for _, d := range s.Devices {
		for _, p := range lastPorts(&d) {
			all++
			if isActive(p) {
				active++
			}
		}
	}
	return all, active
}

func lastPorts(d *state.DeviceState) []state.Port {
	if !d.Present || d.Last == nil || d.Last.Info == nil {
		return nil
	}
	return d.Last.Info.Ports
}

func problemPorts(s *state.Snapshot, expected int) *Problem {
	all, active := portsOf(s)
	if active >= expected {
		return nil
	}
	var without []string
	for _, d := range s.Devices {
		ports := lastPorts(&d)
		if len(ports) == 0 {
			without = append(without, fmt.Sprintf("the ports of %s are not known", word(d.Name)))
		}
		for _, p := range ports {
			if !isActive(p) {
				without = append(without, fmt.Sprintf("%s port %d is %s", word(d.Name), p.Number, word(p.State)))
			}
		}
	}
	message := fmt.Sprintf("%s expected, %d active of %s on %s", text.Plural(expected, "active port"),
		active, text.Plural(all, "port"), text.Plural(len(s.Devices), "device"))
	if len(without) > 0 {
		message += ": " + text.Join(without, ", ", 32)
	}
	return &Problem{
		Kind: ProblemPorts, Health: Critical, Message: message + ".",
		Action: "Check `rdma link show`, and the cable, module and switch of the ports that are not active; `ls /sys/class/infiniband` and `dmesg` if a device is missing. If the host should have fewer, lower `--expect-active-ports`.",
	}
}
