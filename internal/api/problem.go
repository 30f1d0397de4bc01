package api

import (
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// problemOf returns what is wrong with the host; nil if nothing is.
func problemOf(s *state.Snapshot) *Problem {
	switch {
	case s.DiscoveryError != "":
		return &Problem{
			Kind: ProblemDiscovery, Health: HealthCritical,
			Message: "The RDMA devices could not be listed: " + text.Clean(s.DiscoveryError),
			Action: "See whether the user that the exporter runs as can read the list: `ls -l /sys/class/infiniband`. " +
				"In a container, mount /sys of the host; if it is mounted elsewhere, say where with `--path.sysfs`. " +
				"What is told of devices is from before, and devices that were added since are missing.",
		}
	case len(s.Devices) > 0:
		return nil
	case s.Provider == simulatedProvider:
		return &Problem{
			Kind: ProblemNoDevices, Health: HealthWarning,
			Message: "No simulated device was found.",
			Action:  "See whether `--device.include` and `--device.exclude` leave all of them out, and what `--simulated.profile` describes.",
		}
	default:
		return &Problem{
			Kind: ProblemNoDevices, Health: HealthWarning,
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
		Kind: ProblemNotListed, Health: HealthUnknown,
		Message: "The RDMA devices have not been listed yet.",
		Action:  "Wait: they are listed within seconds of the start. If it stays so, see the log of the exporter.",
	}
}
