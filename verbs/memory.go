package verbs

// Memory is what a process holds, in bytes.
type Memory struct {
	// Virtual is the size of the address space (VmSize).
	Virtual uint64
	// Locked is the memory pinned by the kernel on the process's behalf (VmPin).
	Locked uint64
	// Runtime is what the Go runtime has mapped for its own tables. It is part of
	// Virtual, and may grow at any moment.
	Runtime uint64
}

// runtimeChunk is the size of the pieces in which the Go runtime maps memory for its own
// tables (persistentChunkSize in runtime/malloc.go).
const runtimeChunk = 256 << 10

// Since returns what the process holds more than it held before, and 0 for what it holds
// less of: an allocator gave something back meanwhile. What the Go runtime took for
// itself is left out: no object is the cause of it.
func (m Memory) Since(before Memory) Memory {
	grown := func(before, after uint64) uint64 { return after - min(before, after) }
	runtime := grown(before.Runtime, m.Runtime)
	return Memory{
		// What is less than a chunk, it had mapped long ago.
		Virtual: grown(before.Virtual+runtime-runtime%runtimeChunk, m.Virtual),
		Locked:  grown(before.Locked, m.Locked),
		Runtime: runtime,
	}
}
