package state

import "time"

// Snapshot is what is known of the host's devices at one moment. Nobody changes
// it once it is published.
type Snapshot struct {
	// Provider is libibverbs or simulated.
	Provider string `json:"provider"`
	// Ready tells that each device found at first has been probed once.
	Ready bool `json:"ready"`
	// Devices are sorted by name.
	Devices []DeviceState `json:"devices"`
	// DiscoveryError says why the devices could not be listed; empty if they
	// could.
	DiscoveryError string `json:"discovery_error,omitempty"`
	// Hardware is the last finished reading of the hardware of all devices; nil before the
	// first. It keeps what Run.Compact does.
	Hardware *Run `json:"hardware,omitempty"`
}

// Simulated tells that the devices exist only to try the exporter.
func (s *Snapshot) Simulated() bool { return s.Provider == "simulated" }

// DeviceState is what is known of one device. Two that are equal say the same: what
// pointers lead to is never changed.
type DeviceState struct {
	Name string `json:"name"`
	// Present tells that the host has the device now. A device that is not
	// present is listed only while a child that was to probe it does not end, or, where
	// everything is done once, if it vanished meanwhile.
	Present bool `json:"present"`
	// Info is what the device last said of itself; nil if it never did.
	Info *Device `json:"info,omitempty"`
	// Last is the last probe run of any depth, as by [Run.Compact]; nil before the first.
	Last *Run `json:"last,omitempty"`
	// Full is the last full probe run that finished its probes, whether they failed or not;
	// nil before the first. It may be Last.
	Full *Run `json:"full,omitempty"`
	// LastSuccess is when the last run with OutcomeOK was started; zero if none.
	LastSuccess time.Time `json:"last_success,omitzero"`
	// Failures is the number of runs since the last one with OutcomeOK.
	Failures int `json:"failures"`
	// Contracts is how the device keeps the contracts of the man pages; nil before
	// they were first judged.
	Contracts *Contracts `json:"contracts,omitempty"`
	// Resources are the objects on the device, of all processes, by the
	// kernel's account; nil before the first inventory.
	Resources *Resources `json:"resources,omitempty"`
	// Hardware is what the kernel shows of the adapter; nil before it was first read.
	Hardware *HardwareState `json:"hardware,omitempty"`
	// Stuck is a child that was killed and has not ended; nil if there is
	// none. Children of the inventory and of the hardware are not meant.
	Stuck *Stuck `json:"stuck,omitempty"`
	// OutOfTime is what was not done or not finished because the time of all of it was
	// up; nil for nothing.
	OutOfTime *OutOfTime `json:"out_of_time,omitempty"`
}

// OutOfTime are the kinds of run for which there was no time.
type OutOfTime struct {
	Kinds []Kind `json:"kinds"`
}

// Stuck is a child process that was killed and has not ended.
type Stuck struct {
	PID int `json:"pid"`
	// Verb is the verb that the child is in; empty if it is in none.
	Verb  string    `json:"verb"`
	Since time.Time `json:"since"`
}
