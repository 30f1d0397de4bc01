package state

import (
	"fmt"
	"slices"
)

// Identity is the device and all software that its answers depend on. Devices with the same
// identity answer alike. Empty fields are unknown.
type Identity struct {
	// Kernel is the kernel's release.
	Kernel       string `json:"kernel,omitempty" wire:"name"`
	Firmware     string `json:"fw_version,omitempty" wire:"name"`
	VendorID     uint32 `json:"vendor_id"`
	VendorPartID uint32 `json:"vendor_part_id"`
	HWVersion    uint32 `json:"hw_version"`
	// Libraries is a digest of the shared libraries of the child, its provider included.
	Libraries string `json:"libraries,omitempty" wire:"name"`
}

// Changes names what differs in another identity, with both values.
func (i Identity) Changes(other Identity) []string {
	var changes []string
	for _, c := range []struct {
		what          string
		before, after any
	}{
		{"kernel", i.Kernel, other.Kernel},
		{"firmware", i.Firmware, other.Firmware},
		{"vendor_id", i.VendorID, other.VendorID},
		{"vendor_part_id", i.VendorPartID, other.VendorPartID},
		{"hw_version", i.HWVersion, other.HWVersion},
		{"libraries", i.Libraries, other.Libraries},
	} {
		if c.before != c.after {
			changes = append(changes, fmt.Sprintf("%s %v, before %v", c.what, c.after, c.before))
		}
	}
	return changes
}

// Facts are answers of a device to requests that are expected to fail. They need not be
// requested again while the identity stays the same.
type Facts struct {
	Identity Identity `json:"identity"`
	// Absent are the QP types that the device, or this process, cannot create.
	Absent []Skip `json:"absent,omitempty"`
	// Inline is the maximum inline data of each QP type that was searched.
	Inline []InlineMax `json:"inline,omitempty"`
	// Methods are how completions were produced, and which better methods failed.
	Methods []KnownMethod `json:"ways,omitempty"`
}

// KnownMethod is a method that was found by trying.
type KnownMethod struct {
	Method
	// Among is a digest of the methods that were available. It holds for no other choice.
	Among string `json:"among" wire:"word"`
}

// Of returns a copy of the facts if they are about an identity, and otherwise empty ones and
// false. The facts may be nil.
func (f *Facts) Of(i Identity) (facts Facts, ok bool) {
	if f == nil || f.Identity != i {
		return Facts{Identity: i}, false
	}
	return Facts{Identity: i, Absent: slices.Clone(f.Absent), Inline: slices.Clone(f.Inline), Methods: slices.Clone(f.Methods)}, true
}
