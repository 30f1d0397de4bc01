package state

import (
	"strings"
	"time"
)

// Snapshot is the state of the host's devices at one moment. Once it is published, nothing
// may modify it.
type Snapshot struct {
	// Provider is libibverbs or simulated.
	Provider string `json:"provider"`
	// Ready is true once each device found at the start has been probed.
	Ready bool `json:"ready"`
	// Devices are sorted by name.
	Devices []DeviceState `json:"devices"`
	// DiscoveryError is why the devices could not be listed.
	DiscoveryError string `json:"discovery_error,omitempty"`
	// StartError is why the last child process could not be started.
	StartError string `json:"start_error,omitempty"`
	// Hardware is the last finished reading of the hardware of all devices, as by [Run.Compact].
	Hardware *Run `json:"hardware,omitempty"`
}

// Simulated reports whether the devices exist only to try the exporter.
func (s *Snapshot) Simulated() bool { return s.Provider == "simulated" }

// DeviceState is the state of one device. What its pointers refer to is immutable, so equal
// values have equal content.
type DeviceState struct {
	Name string `json:"name"`
	// Present is false only for a device that vanished.
	Present bool `json:"present"`
	// Vanished is when it did. Zero if it is present, or if its kind comes and goes with its users.
	Vanished time.Time `json:"vanished,omitzero"`
	// Info is what the device last reported of itself.
	Info *Device `json:"info,omitempty"`
	// Last is the last probe run of any depth.
	Last *Run `json:"last,omitempty"`
	// Full is the last full probe run that finished its probes, even if some failed. It may
	// be Last.
	Full *Run `json:"full,omitempty"`
	// LastSuccess is when the last probe run with the outcome ok started.
	LastSuccess time.Time `json:"last_success,omitzero"`
	// Failures is the number of probe runs since then.
	Failures  int            `json:"failures"`
	Contracts *Contracts     `json:"contracts,omitempty"`
	Resources *Resources     `json:"resources,omitempty"`
	Hardware  *HardwareState `json:"hardware,omitempty"`
	// Paths are the paths to devices of peers, in the order of the peers.
	Paths []PathState `json:"paths,omitempty"`
	// Bandwidth is absent if it is not measured on a schedule.
	Bandwidth *BandwidthState `json:"bandwidth,omitempty"`
	// Stuck is a child of a probe or contract run that was killed and has not exited.
	Stuck *Stuck `json:"stuck,omitempty"`
	// OutOfTime is what was not finished when the time of an audit was up.
	OutOfTime *OutOfTime `json:"out_of_time,omitempty"`
}

// NodeGUID returns what identifies the device whatever it is called. It is empty if it is not
// known, or zero, as those of some virtual functions are.
func (d *DeviceState) NodeGUID() string {
	if d.Info == nil || strings.Trim(d.Info.NodeGUID, "0:") == "" {
		return ""
	}
	return d.Info.NodeGUID
}

// OutOfTime has the kinds of run that were not finished.
type OutOfTime struct {
	Kinds []Kind `json:"kinds"`
}

// Stuck is a child process that was killed and has not exited.
type Stuck struct {
	PID int `json:"pid"`
	// Verb is the verb that it is in, if any.
	Verb  string    `json:"verb"`
	Since time.Time `json:"since"`
}
