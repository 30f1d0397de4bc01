package state

import (
	"fmt"
	"slices"
)

// Identity is what the answers of a device depend on that no program can change: the
// device itself, and all software that has a part in them. Two that are equal answer
// alike.
type Identity struct {
	// Kernel is the kernel's release; empty if it is not known.
	Kernel string `json:"kernel,omitempty" wire:"name"`
	// Firmware, VendorID, VendorPartID and HWVersion are what the device says of itself.
	Firmware     string `json:"fw_version,omitempty" wire:"name"`
	VendorID     uint32 `json:"vendor_id"`
	VendorPartID uint32 `json:"vendor_part_id"`
	HWVersion    uint32 `json:"hw_version"`
	// Libraries is a digest of the shared libraries of the process that asked, with
	// those of the device's vendor; empty if they are not known.
	Libraries string `json:"libraries,omitempty" wire:"name"`
}

// Changes names what differs in another identity, with what it is in each; nothing if
// they are the same.
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

// Facts are what a device answered to what is asked for in order to be refused. Nobody
// need ask again as long as the identity is the same.
type Facts struct {
	Identity Identity `json:"identity"`
	// Absent are the types of QP that the device does not have, or that the process may
	// not have, as the probe qp reports them.
	Absent []Skip `json:"absent,omitempty"`
	// Inline is the most inline data that a QP of each type can be given. A type that
	// is in neither list was not found out about.
	Inline []InlineMax `json:"inline,omitempty"`
	// Methods are those by which completions were brought about, with the better ones that
	// did not do, which need not be tried again.
	Methods []KnownMethod `json:"ways,omitempty"`
}

// KnownMethod is a way that was found by trying.
type KnownMethod struct {
	Method
	// Among is a digest of what there was to choose from. For another choice nothing is
	// known.
	Among string `json:"among" wire:"word"`
}

// Of returns the facts if they are those of an identity, and empty ones of it
// otherwise. It changes nothing, nor do changes of what it returns. Known tells which
// it is. The facts may be nil.
func (f *Facts) Of(i Identity) (facts Facts, known bool) {
	if f == nil || f.Identity != i {
		return Facts{Identity: i}, false
	}
	return Facts{Identity: i, Absent: slices.Clone(f.Absent), Inline: slices.Clone(f.Inline), Methods: slices.Clone(f.Methods)}, true
}
