package inventory

import (
	"errors"
	"fmt"
	"time"
)

// Config says what an inventory may cost, and where it finds owners. The zero value is
// not valid; start from DefaultConfig.
type Config struct {
	// Budget is the time that may be spent on looking at objects. What is not looked
	// at by then is only counted. An eighth of it is for looking at their owners.
	Budget time.Duration `json:"budget_ns"`
	// MaxObjects is the most objects of one type that are looked at one by one. Of
	// a type that has more, only their number is told.
	MaxObjects int64 `json:"max_objects"`
	// Owners is how many owners of each type are named.
	Owners int `json:"owners"`
	// NoOwners has none of them named, and NoCgroups leaves out what their cgroups use.
	NoOwners  bool `json:"no_owners"`
	NoCgroups bool `json:"no_cgroups"`
	// Procfs and Cgroup are where these file systems are mounted.
	Procfs string `json:"procfs"`
	Cgroup string `json:"cgroup"`
}

// DefaultConfig returns what holds unless somebody says otherwise.
func DefaultConfig() Config {
	return Config{Budget: 8 * time.Second, MaxObjects: 20000, Owners: 10, Procfs: "/proc", Cgroup: "/sys/fs/cgroup"}
}

// maxOwners bounds the series of a device: there are seven types of object.
const maxOwners = 100

// Validate returns an error that names each flag whose value cannot be used, and the
// range that can.
func (c Config) Validate() error {
	var errs []error
	if c.MaxObjects < 0 {
		errs = append(errs, fmt.Errorf("--inventory.max-objects is %d: use a number from 0", c.MaxObjects))
	}
	if c.Owners < 0 || c.Owners > maxOwners {
		errs = append(errs, fmt.Errorf("--inventory.owners is %d: use a number from 0 to %d", c.Owners, maxOwners))
	}
	return errors.Join(errs...)
}
