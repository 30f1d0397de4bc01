package inventory

import "time"

// Config limits the cost of an inventory, and locates owners. Start from DefaultConfig.
type Config struct {
	// Budget limits the time for reading tables. Objects that are not read by then are only
	// counted. An eighth of it is added for their owners.
	Budget time.Duration `json:"budget_ns"`
	// MaxObjects is how many objects of one type are read in any case. If there are more, reading
	// ends after a quarter of the Budget.
	MaxObjects int64 `json:"max_objects"`
	// Owners is how many owners of each type are named.
	Owners int `json:"owners"`
	// NoOwners leaves out the owners, and NoCgroups the use by their cgroups.
	NoOwners  bool `json:"no_owners"`
	NoCgroups bool `json:"no_cgroups"`
	// Procfs and Cgroup are where these file systems are mounted.
	Procfs string `json:"procfs"`
	Cgroup string `json:"cgroup"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Budget: 8 * time.Second, MaxObjects: 20000, Owners: 10, Procfs: "/proc", Cgroup: "/sys/fs/cgroup"}
}
