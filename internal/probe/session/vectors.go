package session

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// DefaultVectors is the default number of completion vectors used of a device.
const DefaultVectors = 4

// maxVectors limits the completion vectors used, so that measurements on all fit into a report.
const maxVectors = 512

// Vectors selects the completion vectors of a device on which runs create CQs. All runs use
// the same, since a driver may set up a queue and an interrupt when a vector is first used, and
// keep them. The zero value selects DefaultVectors.
type Vectors struct {
	// Most is the maximum number, spread evenly over those of the device.
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

// Of returns the vectors used of all, in ascending order and at least one. The first and the
// last are among them.
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
