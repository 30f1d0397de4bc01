package health

import (
	"errors"
	"fmt"
	"time"

	"rdma_exporter/internal/state"
)

// Config says from when on something is worth a finding, and how old what is known may
// be. The thresholds are the key findings of the configuration file. The zero value is
// not valid; start from Default.
type Config struct {
	// NearLimit is of the objects of one type that a device allows.
	NearLimit Levels `yaml:"near_limit"`
	// CgroupNearLimit is of what the RDMA controller allows a cgroup.
	CgroupNearLimit Levels `yaml:"cgroup_near_limit"`
	// MemlockNearLimit is of the memory that a process may have in place.
	MemlockNearLimit Levels `yaml:"memlock_near_limit"`
	// OrphanAge is for how long inventories must have found objects without an owner, or
	// left of the exporter's own children, before that is put down to more than the
	// time that the kernel takes to clean up after a process.
	OrphanAge time.Duration `yaml:"orphan_age"`
	// QPErrors is the number of queue pairs in an error state.
	QPErrors int64 `yaml:"qp_errors"`
	// CQEntries is the number of entries of unfillable completion queues, all
	// together.
	CQEntries int64 `yaml:"cq_entries"`
	// PortFlapping is how often a port must have gone down, within which time.
	PortFlapping Flapping `yaml:"port_flapping"`
	// Growing is how the objects of an owner, or of all together, must have grown.
	Growing Growing `yaml:"growing"`
	// StaleAfter is how old the last run of each kind may be before it counts as stale.
	// For kinds that it lacks, no age is too much.
	StaleAfter map[state.Kind]time.Duration `yaml:"-"`
	// Once tells that the devices are looked at once: one that is not present then has
	// vanished meanwhile, which is a finding.
	Once bool `yaml:"-"`
	// Accept says which findings are accepted. It is the key accept of the configuration
	// file; ValidateAccepts checks it.
	Accept []Accept `yaml:"-"`
	// DocsURL goes before the paths of documents in what to do; empty if it is not known
	// where they are. It is the key docs_url of the configuration file.
	DocsURL string `yaml:"-"`
	// Now is the clock by which findings are since when they are, and acceptances expire.
	// Without one no finding has a time, and nothing expires.
	Now func() time.Time `yaml:"-"`
	// ActivePorts is how many ports of all devices together have to be active; 0 for any
	// number.
	ActivePorts int `yaml:"-"`
}

// Levels are fractions of a limit, above 0 and up to 1, that something must reach.
type Levels struct {
	Warning  float64 `yaml:"warning"`
	Critical float64 `yaml:"critical"`
}

// Flapping is how often a port goes down within a time.
type Flapping struct {
	Downs  int64         `yaml:"downs"`
	Window time.Duration `yaml:"window"`
}

// Growing is by how many objects something must have grown, for how long at least, and how
// soon it must reach the limit of the device at this pace to be more than worth knowing.
type Growing struct {
	Objects int64         `yaml:"objects"`
	Window  time.Duration `yaml:"window"`
	Within  time.Duration `yaml:"within"`
}

// Default returns what holds unless it is configured otherwise: nothing gets too old.
func Default() Config {
	levels := Levels{Warning: 0.8, Critical: 0.95}
	return Config{
		NearLimit: levels, CgroupNearLimit: levels, MemlockNearLimit: levels,
		OrphanAge: time.Minute,
		// One will do: a host with few queue pairs misses each. What only passes by, as
		// when a program ends, is for the alert to sit out.
		QPErrors: 1,
		// At the usual 64 bytes an entry, 4 MiB of memory pinned for nothing.
		CQEntries: 1 << 16,
		// One is a restart of the other end, two may be that of a switch.
		PortFlapping: Flapping{Downs: 3, Window: time.Hour},
		// A job has created what it needs by then, and a day is time to restart another.
		Growing: Growing{Objects: 50, Window: 30 * time.Minute, Within: 24 * time.Hour},
	}
}

// The most that may be configured.
const (
	maxOrphanAge = 24 * time.Hour
	maxWindow    = 24 * time.Hour
	minGrowing   = 10 * time.Minute
	maxGrowing   = 55 * time.Minute
	maxWithin    = 365 * 24 * time.Hour
	maxCount     = 1 << 48
)

// Validate returns an error that names each key of the configuration file whose
// value cannot be used, and the range that can; nil if all can.
func (c Config) Validate() error {
	var errs []error
	levels := func(key string, l Levels) {
		fraction := func(name string, value float64) bool {
			// Written so that NaN is refused as well.
			if value > 0 && value <= 1 {
				return true
			}
			errs = append(errs, fmt.Errorf("findings.%s.%s is %v: use a number above 0, up to 1", key, name, value))
			return false
		}
		warning, critical := fraction("warning", l.Warning), fraction("critical", l.Critical)
		if warning && critical && l.Warning > l.Critical {
			errs = append(errs, fmt.Errorf("findings.%s.warning is %v: use a number not above critical, which is %v", key, l.Warning, l.Critical))
		}
	}
	count := func(key string, value int64) {
		if value < 1 || value > maxCount {
			errs = append(errs, fmt.Errorf("findings.%s is %d: use a number from 1 to %d", key, value, int64(maxCount)))
		}
	}
	levels("near_limit", c.NearLimit)
	levels("cgroup_near_limit", c.CgroupNearLimit)
	levels("memlock_near_limit", c.MemlockNearLimit)
	if c.OrphanAge < 0 || c.OrphanAge > maxOrphanAge {
		errs = append(errs, fmt.Errorf("findings.orphan_age is %s: use a duration from 0s to %s", c.OrphanAge, maxOrphanAge))
	}
	count("qp_errors", c.QPErrors)
	count("cq_entries", c.CQEntries)
	if f := c.PortFlapping; f.Downs < 1 || f.Downs > state.MaxRecent {
		errs = append(errs, fmt.Errorf("findings.port_flapping.downs is %d: use a number from 1 to %d", f.Downs, state.MaxRecent))
	}
	if w := c.PortFlapping.Window; w <= 0 || w > maxWindow {
		errs = append(errs, fmt.Errorf("findings.port_flapping.window is %s: use a duration above 0s, up to %s", w, maxWindow))
	}
	count("growing.objects", c.Growing.Objects)
	if w := c.Growing.Window; w < minGrowing || w > maxGrowing {
		errs = append(errs, fmt.Errorf("findings.growing.window is %s: use a duration from %s to %s", w, minGrowing, maxGrowing))
	}
	if w := c.Growing.Within; w < 0 || w > maxWithin {
		errs = append(errs, fmt.Errorf("findings.growing.within is %s: use a duration from 0s to %s", w, maxWithin))
	}
	return errors.Join(errs...)
}
