package state

import "time"

// Registration is what came of registering memory of one kind.
type Registration struct {
	Memory RegisteredMemory `json:"memory" wire:"key"`
	// Bytes is how much it was.
	Bytes  int64              `json:"bytes"`
	Result RegistrationResult `json:"result"`
	// Duration is the time that the verb took; 0 unless the memory was registered.
	Duration time.Duration `json:"ns,omitempty"`
	// By is what refused it, and Errno how; empty unless it was refused.
	By    RefusedBy `json:"refused_by,omitempty"`
	Errno string    `json:"errno,omitempty" wire:"word"`
	// Detail says in words why it was not registered; empty if it was.
	Detail string `json:"detail,omitempty"`
}

// RegisteredMemory is a kind of memory that is registered.
type RegisteredMemory string

// The kinds of memory.
const (
	// MemoryPage is a page of the usual size, and MemoryMany 2 MiB of them.
	MemoryPage RegisteredMemory = "4KiB"
	MemoryMany RegisteredMemory = "2MiB"
)

// RegisteredMemories returns every kind of memory, in the order in which it is registered.
func RegisteredMemories() []RegisteredMemory {
	return []RegisteredMemory{MemoryPage, MemoryMany}
}

// RegistrationResult says what came of registering memory.
type RegistrationResult string

// The results.
const (
	// MemoryRegistered: it was registered, and given back.
	MemoryRegistered RegistrationResult = "registered"
	// MemoryRefused: it was refused.
	MemoryRefused RegistrationResult = "refused"
)

// RegistrationResults returns every result.
func RegistrationResults() []RegistrationResult {
	return []RegistrationResult{MemoryRegistered, MemoryRefused}
}

// RefusedBy is what refused memory to be registered.
type RefusedBy string

// What can refuse it.
const (
	// RefusedByMemlock: the limit on what the process may have in place (RLIMIT_MEMLOCK).
	RefusedByMemlock RefusedBy = "memlock"
	// RefusedByCgroup: the RDMA controller, or what may be that of a cgroup which the
	// process does not see.
	RefusedByCgroup RefusedBy = "cgroup"
	// RefusedByHost: the host, which has hardly any memory left, or gives the process no
	// more mappings.
	RefusedByHost RefusedBy = "host"
	// RefusedByDevice: the device, its driver or its library. Whatever nothing else
	// accounts for is of it.
	RefusedByDevice RefusedBy = "device"
)

// AllRefusedBy returns everything that can refuse memory to be registered.
func AllRefusedBy() []RefusedBy {
	return []RefusedBy{RefusedByMemlock, RefusedByCgroup, RefusedByHost, RefusedByDevice}
}
