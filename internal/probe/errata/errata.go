// Package errata lists documented defects of drivers: the promises of the man pages that
// each driver breaks, and the sizes of which it gives less than requested. An erratum is a
// fact about the driver. It is not a fault of the device that shows it.
package errata

import (
	"slices"
	"strconv"
	"strings"
)

// Driver is the driver of a device. An empty field means unknown.
type Driver struct {
	// Name is the name of rdma-core and the kernel's enum rdma_driver_id, in lower case,
	// such as mlx5 or bnxt_re. Without it there are no errata.
	Name string
	// Kernel is the release of the kernel, as uname -r reports it.
	Kernel string
	// RDMACore is the release of rdma-core, such as 44.0, that the process has loaded.
	RDMACore string
}

// Erratum is a promise that a driver is known to break.
type Erratum struct {
	// Driver and Contract are names.
	Driver, Contract string
	// Modes are the ways in which the driver breaks the contract, of those that its check
	// distinguishes: names of sizes, or Mode constants. Empty means any.
	Modes []string
	// MaxShortfall limits by how much less than requested a size is. Zero means no limit.
	MaxShortfall int64
	// FixedIn is the first release of the kernel, such as 6.12, known to keep the promise.
	// Releases between the one that was seen to break it and this one may do either.
	FixedIn string
	// SinceLibrary is the first release of rdma-core that breaks the promise. Empty means that no
	// release without the erratum is known.
	SinceLibrary string
	// FixedInLibrary are the first releases of rdma-core that keep the promise, such as
	// "44.8 47.5 48": those with backports, each for its major number, and the one for all others.
	FixedInLibrary string
	// What is a sentence about what the driver does.
	What string
	// Source names the functions and files of rdma-core and Linux that show it.
	Source string
}

// Of returns the errata of a driver for a contract.
func (d Driver) Of(contract string) []Erratum {
	return slices.DeleteFunc(All(), func(e Erratum) bool {
		return d.Name == "" || e.Driver != d.Name || e.Contract != contract ||
			reaches(d.Kernel, e.FixedIn) || hasFix(d.RDMACore, e.FixedInLibrary) ||
			d.RDMACore != "" && e.SinceLibrary != "" && !reaches(d.RDMACore, e.SinceLibrary)
	})
}

// Explains returns the erratum by which the driver breaks a contract in a mode. Less is by
// how much a size is less than requested.
func (d Driver) Explains(contract, mode string, less int64) (Erratum, bool) {
	for _, e := range d.Of(contract) {
		if (len(e.Modes) == 0 || slices.Contains(e.Modes, mode)) && (e.MaxShortfall == 0 || less <= e.MaxShortfall) {
			return e, true
		}
	}
	return Erratum{}, false
}

// hasFix reports whether a release is at least the last of some releases, or at least one with
// the same major number.
func hasFix(release, fixed string) bool {
	releases := strings.Fields(fixed)
	return slices.ContainsFunc(releases, func(first string) bool {
		return reaches(release, first) &&
			(first == releases[len(releases)-1] || majorMinor(first)[0] == majorMinor(release)[0])
	})
}

// reaches reports whether a release is at least another one. Neither may be empty.
func reaches(release, first string) bool {
	return release != "" && first != "" && slices.Compare(majorMinor(release), majorMinor(first)) >= 0
}

func majorMinor(release string) []int {
	var numbers []int
	for _, part := range strings.SplitN(release, ".", 3) {
		digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]
		n, _ := strconv.Atoi(digits) // No number counts as 0.
		numbers = append(numbers, n)
	}
	return numbers[:min(len(numbers), 2)]
}
