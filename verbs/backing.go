package verbs

import "errors"

// Backing is what the buffer of a memory region is made of.
type Backing int

// What a buffer can be made of.
const (
	// BackingPages: pages of the usual size, all of which are there before they are
	// registered.
	BackingPages Backing = iota
	// BackingHugePages: huge pages of 2 MiB from the pool of the host.
	BackingHugePages
	// BackingDMABuf: a dma-buf, as devices share their memory, made of the host's.
	BackingDMABuf
)

// Backings returns everything that a buffer can be made of.
func Backings() []Backing { return []Backing{BackingPages, BackingHugePages, BackingDMABuf} }

// Verb returns the verb that registers a buffer of that.
func (b Backing) Verb() Verb {
	if b == BackingDMABuf {
		return RegDMABufMR
	}
	return RegMR
}

// HugePageSize is the size of the huge pages that buffers are made of, in bytes.
const HugePageSize = 2 << 20

// ErrNoBacking is matched by the error of [PD].RegMRBackedBy if the host has nothing to
// make the buffer of, or does not let the process have it; the latter also matches
// os.ErrPermission. No verb was called.
var ErrNoBacking = errors.New("the host has no such memory to spare")
