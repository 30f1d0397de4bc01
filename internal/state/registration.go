package state

import "time"

// Registration is the result of registering memory of one kind.
type Registration struct {
	Memory RegisteredMemory   `json:"memory" wire:"key"`
	Bytes  int64              `json:"bytes"`
	Result RegistrationResult `json:"result"`
	// Duration is the time that the verb took; zero unless the memory was registered.
	Duration time.Duration `json:"ns,omitempty"`
	// By is what refused it.
	By    RefusedBy `json:"refused_by,omitempty"`
	Errno string    `json:"errno,omitempty" wire:"word"`
	// Detail explains why it was not registered.
	Detail string `json:"detail,omitempty"`
}

// RegisteredMemory is a kind of memory that is registered.
type RegisteredMemory string

// The kinds of memory: one page of the usual size, and 2 MiB of them.
const (
	MemoryPage RegisteredMemory = "4KiB"
	MemoryMany RegisteredMemory = "2MiB"
)

// RegisteredMemories returns every kind of memory, in the order in which it is registered.
func RegisteredMemories() []RegisteredMemory { return []RegisteredMemory{MemoryPage, MemoryMany} }

// RegistrationResult is the result of registering memory.
type RegistrationResult string

// The results.
const (
	MemoryRegistered RegistrationResult = "registered"
	MemoryRefused    RegistrationResult = "refused"
)

// RefusedBy is what refused to register memory.
type RefusedBy string

// What can refuse it.
const (
	// RefusedByMemlock is the limit RLIMIT_MEMLOCK.
	RefusedByMemlock RefusedBy = "memlock"
	// RefusedByCgroup is the RDMA controller, perhaps of a cgroup that the process cannot see.
	RefusedByCgroup RefusedBy = "cgroup"
	// RefusedByHost means that the host is short of memory, or of mappings for the process.
	RefusedByHost RefusedBy = "host"
	// RefusedByDevice is the device, its driver or its library, if nothing else explains it.
	RefusedByDevice RefusedBy = "device"
)

// AllRefusedBy returns everything that can refuse to register memory.
func AllRefusedBy() []RefusedBy {
	return []RefusedBy{RefusedByMemlock, RefusedByCgroup, RefusedByHost, RefusedByDevice}
}
