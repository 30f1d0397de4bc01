package inventory

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/state"
)

// census finds the largest owners of each type, and identifies them.
type census struct {
	o Options
	// until is when to stop asking.
	until time.Time
	// processes are the processes of known threads. Zero means that the thread has ended.
	processes map[uint32]int
	// ours is true for children of the exporter.
	ours map[int]bool
	// named are the owners to identify.
	named map[int]*state.Owner
}

// process returns the process of a thread. It is 0 if the thread has ended, or if the budget is
// spent.
func (c *census) process(thread uint32) int {
	if thread == 0 {
		return 0
	}
	if pid, ok := c.processes[thread]; ok {
		return pid
	}
	if time.Now().After(c.until) {
		return 0
	}
	pid, err := c.o.People.Process(int(thread))
	switch {
	case errors.Is(err, owner.ErrGone):
		pid = 0
	case err != nil:
		// The process cannot be read. Usually its first thread creates its objects, and has
		// the number of the process.
		pid = int(thread)
	}
	c.processes[thread] = pid
	return pid
}

// own reports whether a thread is one of a child of the exporter. It asks as soon as an object of
// the thread is seen, because children do not live long.
func (c *census) own(thread uint32) bool {
	pid := c.process(thread)
	if pid == 0 {
		return false
	}
	ours, asked := c.ours[pid]
	if !asked {
		is, err := childOf(c.o.People, pid, c.o.Exporter, c.o.Own)
		if errors.Is(err, owner.ErrGone) {
			c.processes[thread] = 0 // it ended between two questions
			return false
		}
		ours = err == nil && is
		c.ours[pid] = ours
	}
	return ours
}

// gone reports whether a thread is known to have ended.
func (c *census) gone(thread uint32) bool {
	pid, asked := c.processes[thread]
	return asked && pid == 0
}

// count finds the largest owners of objects of a type, by the number that each thread created. It
// returns the number of objects of others.
func (c *census) count(typ string, threads map[uint32]int64) (others int64) {
	if c.o.NoOwners {
		for _, n := range threads {
			others += n
		}
		return others
	}
	owned := make(map[int]int64)
	for _, thread := range largest(threads) {
		if pid := c.process(thread); pid != 0 {
			owned[pid] += threads[thread]
		} else {
			others += threads[thread]
		}
	}
	for i, pid := range largest(owned) {
		if i >= c.o.Owners {
			others += owned[pid]
			continue
		}
		own, ok := c.named[pid]
		if !ok {
			own = &state.Owner{PID: pid}
			c.named[pid] = own
		}
		own.Objects = append(own.Objects, state.TypeCount{Type: typ, Objects: owned[pid]})
	}
	return others
}

// passing returns the number of objects, by the thread that created them, of processes that have
// ended since, or have the name of the exporter. At most so many of that name count, because a program
// chooses its name.
func (c *census) passing(threads map[uint32]int64, most int64) int64 {
	var ended, named int64
	for _, thread := range largest(threads) {
		if time.Now().After(c.until) {
			break // The others are unknown.
		}
		var id owner.Identity
		err := owner.ErrGone
		if pid := c.process(thread); pid != 0 {
			id, err = c.o.People.Identify(pid)
		}
		switch {
		case errors.Is(err, owner.ErrGone):
			ended += threads[thread]
		case err == nil && c.o.Own != "" && id.Comm == c.o.Own:
			named += threads[thread]
		}
	}
	return ended + min(named, most)
}

// largest returns the keys in the order of their values, the largest first.
func largest[K cmp.Ordered](m map[K]int64) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
}

// owners identifies the owners, reads their locked memory and returns what their cgroups use
// of the device. It asks for the largest first, so a spent budget leaves the small ones unnamed.
// The owners are in the order of their process IDs.
func (c *census) owners() ([]state.Owner, []state.CgroupUse) {
	sizes := make(map[int]int64, len(c.named))
	for pid, o := range c.named {
		for _, t := range o.Objects {
			sizes[pid] += t.Objects
		}
	}
	var owners []state.Owner
	var uses []state.CgroupUse
	asked := make(map[string]bool)
	for _, pid := range largest(sizes) {
		o := *c.named[pid]
		if time.Now().After(c.until) {
			owners = append(owners, o)
			continue
		}
		// An owner that has ended since keeps only its process ID.
		id, err := c.o.People.Identify(pid)
		if err == nil {
			o.Started, o.Comm, o.Cgroup = id.Started, tidy(id.Comm), tidy(id.Cgroup)
			o.ContainerID, o.PodUID, o.SlurmJobID = id.ContainerID, id.PodUID, id.SlurmJobID
		}
		if m, err := c.o.People.Memlock(pid); err == nil {
			o.Memlock = &state.Memlock{Pinned: m.Pinned, Locked: m.Locked, Limit: m.Limit}
		}
		owners = append(owners, o)
		if c.o.NoCgroups || o.Cgroup == "" || asked[o.Cgroup] {
			continue
		}
		asked[o.Cgroup] = true
		uses = append(uses, c.uses(&o, id.Cgroup)...)
	}
	slices.SortFunc(owners, func(a, b state.Owner) int { return cmp.Compare(a.PID, b.PID) })
	return owners, uses
}

// maxName limits a name from outside, in bytes. The path of a cgroup can have 4096, and any program
// that may create a cgroup can choose it.
const maxName = 256

// tidy replaces control characters in a name, and limits it to maxName.
func tidy(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, name)
	if len(name) <= maxName {
		return name
	}
	cut := maxName - len("…")
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + "…"
}

// uses returns the use and the limits of the device in the cgroup of an owner. It is empty without
// the RDMA controller.
func (c *census) uses(o *state.Owner, path string) []state.CgroupUse {
	all, err := c.o.People.RDMAController(path)
	if err != nil {
		return nil
	}
	var uses []state.CgroupUse
	for _, u := range all {
		if u.Device == c.o.Device {
			uses = append(uses, state.CgroupUse{
				Cgroup: o.Cgroup, ContainerID: o.ContainerID, PodUID: o.PodUID, SlurmJobID: o.SlurmJobID,
				Resource: u.Resource, Current: u.Current, Limit: u.Limit,
			})
		}
	}
	return uses
}
