package health

import (
	"rdma_exporter/internal/state"
)

// Problem is what is wrong with a host.
type Problem struct {
	Kind   ProblemKind
	Health Health
	// Message says what is wrong, and may have words from outside, and Action what to do.
	Message, Action string
}

// ProblemKind is what a problem of the host is about.
type ProblemKind string

// The kinds of problem.
const (
	// ProblemNotListed: the devices have not been listed yet.
	ProblemNotListed ProblemKind = "not_listed_yet"
	// ProblemDiscovery: the devices could not be listed.
	ProblemDiscovery ProblemKind = "discovery_failed"
	// ProblemNoDevices: there is no device.
	ProblemNoDevices ProblemKind = "no_devices"
)

// ProblemKinds returns every kind of problem.
func ProblemKinds() []ProblemKind {
	return []ProblemKind{ProblemNotListed, ProblemDiscovery, ProblemNoDevices}
}

// problemOf returns what is wrong with the host; nil if nothing is.
func problemOf(s *state.Snapshot) *Problem {
	switch {
	case s == nil:
		return problemNotListed()
	case s.DiscoveryError != "":
		return &Problem{
			Kind: ProblemDiscovery, Health: Critical,
			Message: "The RDMA devices could not be listed: " + s.DiscoveryError,
			Action: "See whether the user that the exporter runs as can read the list: `ls -l /sys/class/infiniband`. " +
				"In a container, mount /sys of the host; if it is mounted elsewhere, say where with `--path.sysfs`. " +
				"What is told of devices is from before, and devices that were added since are missing.",
		}
	case len(s.Devices) > 0:
		return nil
	case s.Simulated():
		return &Problem{
			Kind: ProblemNoDevices, Health: Warning,
			Message: "No simulated device was found.",
			Action:  "See whether `--device.include` and `--device.exclude` leave all of them out, and what `--simulated.profile` describes.",
		}
	default:
		return &Problem{
			Kind: ProblemNoDevices, Health: Warning,
			Message: "No RDMA device was found.",
			Action: "See what the host has: `ls /sys/class/infiniband` and `rdma link`. " +
				"If that is nothing, see whether the adapter is there (`lspci`) and its driver loaded: `modprobe mlx5_ib`, or irdma, bnxt_re, efa and so on; `dmesg` tells why it did not take the adapter. " +
				"If the host has devices and the exporter runs in a container, mount /sys and /dev/infiniband of the host. " +
				"If `rdma system show` says `netns exclusive`, the device has to be moved into the network namespace of the exporter: `rdma dev set DEVICE netns NAME`. " +
				"`--device.include` and `--device.exclude` may leave all of them out. " +
				"To try the exporter without a device: `--provider=simulated`.",
		}
	}
}

// problemNotListed is the problem before anything is known.
func problemNotListed() *Problem {
	return &Problem{
		Kind: ProblemNotListed, Health: Unknown,
		Message: "The RDMA devices have not been listed yet.",
		Action:  "Wait: they are listed within seconds of the start. If it stays so, see the log of the exporter.",
	}
}
