package verbs

// Memory is what an object costs a process, in bytes.
type Memory struct {
	// Virtual is address space (VmSize).
	Virtual uint64
	// Locked is the memory pinned by the kernel on the process's behalf (VmPin).
	Locked uint64
}
