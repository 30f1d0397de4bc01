package session

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// DefaultVectors is how many completion vectors of a device are used if nothing else is
// said.
const DefaultVectors = 4

const (
	// maxVectors is the most completion vectors of a device that are used. A run that
	// measures on each of them fits into its report.
	maxVectors = 512
)

// Vectors says on which completion vectors of a device there may be CQs. The choice is
// the same in each run of any kind: a driver may set up a queue and an interrupt when a
// vector is first used, and keep them for as long as there is the device. The zero value
// is DefaultVectors of them.
type Vectors struct {
	// Most is how many there are at most, spread evenly over those of the device.
	Most int `json:"most"`
}

// Validate returns an error that names each flag whose value cannot be used, and the
// range that can.
func (v Vectors) Validate() error {
	if v.Most < 1 || v.Most > maxVectors {
		return fmt.Errorf("--notification.vectors is %d: use one from 1 to %d", v.Most, maxVectors)
	}
	return nil
}

// Of returns the vectors that are used, at least one, of a device that says that it has
// so many, in ascending order. The first and the last are among them.
func (v Vectors) Of(all int) []int {
	all = max(all, 1) // there is one if there are CQs
	list := make([]int, min(cmp.Or(v.Most, DefaultVectors), all))
	for i := range list {
		list[i] = i * (all - 1) / max(len(list)-1, 1)
	}
	return list
}

// Join lists numbers.
func Join(list []int) string {
	var s []string
	for _, n := range list {
		s = append(s, strconv.Itoa(n))
	}
	return strings.Join(s, ", ")
}
