// Package known is what drivers are known for: the promises of the man pages that
// each of them is known to break, and the sizes that it is known to give less of than
// was asked for. What is known of a driver is a fact about it, and no fault of the
// device that shows it.
package known

import (
	"slices"
	"strconv"
	"strings"
)

// Driver is the driver of a device.
type Driver struct {
	// Name is what rdma-core and the kernel's enum rdma_driver_id call it, in lower
	// case, such as mlx5 or bnxt_re; empty if it is not known. Nothing is known of a
	// driver without a name.
	Name string
	// Kernel is the release of the kernel, as uname -r tells it; empty if it is not
	// known.
	Kernel string
	// RDMACore is the release of rdma-core, such as 44.0, that the process has loaded;
	// empty if it is not known.
	RDMACore string
}

// Fact is one promise that a driver is known to break.
type Fact struct {
	// Driver is the name of the driver.
	Driver string
	// Contract is the name of the contract.
	Contract string
	// Ways are the ways in which the driver breaks it, of those that the contract's
	// check tells apart: names of sizes, or what went wrong. Any other way is not
	// known. Empty stands for every way.
	Ways []string
	// Most is by how much, at most, a size is less than was asked for; 0 stands for
	// any amount.
	Most int64
	// Mended is the first release of the kernel, such as 6.12, of which it is known
	// that it keeps the promise; empty if none is known. What comes between the one
	// that was seen to break it and this one may do either.
	Mended string
	// MendedLibrary is likewise the first release of rdma-core.
	MendedLibrary string
	// What is what the driver does, as a sentence.
	What string
	// Source is where that is written: functions and files of rdma-core and Linux.
	Source string
}

// Of returns what is known of a driver and a contract; none if nothing is.
func (d Driver) Of(contract string) []Fact {
	var facts []Fact
	for _, f := range Facts() {
		if d.Name != "" && f.Driver == d.Name && f.Contract == contract && !f.mended(d) {
			facts = append(facts, f)
		}
	}
	return facts
}

// Explains tells whether something is known of a driver by which it breaks a contract
// in a way, by so much if it is a size that is less than was asked for, and what.
func (d Driver) Explains(contract, way string, less int64) (Fact, bool) {
	for _, f := range d.Of(contract) {
		if (len(f.Ways) == 0 || slices.Contains(f.Ways, way)) && (f.Most == 0 || less <= f.Most) {
			return f, true
		}
	}
	return Fact{}, false
}

// mended tells whether the driver's kernel or library is known to keep the promise.
func (f *Fact) mended(d Driver) bool {
	return reaches(d.Kernel, f.Mended) || reaches(d.RDMACore, f.MendedLibrary)
}

// reaches tells whether a release is another one or a later one. Neither may be empty.
func reaches(is, first string) bool {
	return is != "" && first != "" && slices.Compare(release(is), release(first)) >= 0
}

// release returns the first two numbers of a release.
func release(s string) []int {
	var numbers []int
	for _, part := range strings.SplitN(s, ".", 3) {
		digits := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		if digits < 0 {
			digits = len(part)
		}
		n, _ := strconv.Atoi(part[:digits]) // No number counts as 0.
		numbers = append(numbers, n)
	}
	return numbers[:min(len(numbers), 2)]
}
