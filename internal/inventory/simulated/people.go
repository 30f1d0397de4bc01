package simulated

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/restrack"
)

// SeesAllPIDs reports whether the kernel names processes, by the profile.
func (h *Host) SeesAllPIDs() (bool, error) {
	return h.device == nil || !h.device.Resources.PIDsInvisible, nil
}

// Process returns the process of a thread, which is its only one. The error matches owner.ErrGone
// if there is none.
func (h *Host) Process(thread int) (pid int, err error) {
	if _, err := h.of(thread); err != nil {
		return 0, err
	}
	return thread, nil
}

// Parent returns 0, because no process of a profile is a child of the exporter. The error matches
// owner.ErrGone if there is no such process.
func (h *Host) Parent(pid int) (parent int, err error) {
	_, err = h.of(pid)
	return 0, err
}

// Identify returns the identity of a process, in valid UTF-8 as package owner does. The error
// matches owner.ErrGone if there is none.
func (h *Host) Identify(pid int) (owner.Identity, error) {
	b, err := h.of(pid)
	if err != nil {
		return owner.Identity{}, err
	}
	id := owner.Identity{PID: pid, Comm: text(b.holder.Comm), Cgroup: text(b.holder.Cgroup), SlurmJobID: owner.SlurmJob(b.holder.Cgroup)}
	id.ContainerID, id.PodUID = owner.ParseCgroup(b.holder.Cgroup)
	return id, nil
}

// Memlock returns the locked memory of a process. The error matches owner.ErrGone if there is none.
func (h *Host) Memlock(pid int) (owner.Memlock, error) {
	b, err := h.of(pid)
	if err != nil {
		return owner.Memlock{}, err
	}
	m := b.holder.Memlock
	return owner.Memlock{Pinned: cmp.Or(m.Pinned, b.registered()), Locked: m.Locked, Limit: cmp.Or(m.Limit, -1)}, nil
}

// registered returns the length of all memory regions, limited to math.MaxInt64.
func (b *batch) registered() int64 {
	over, bytes := bits.Mul64(uint64(b.objects[restrack.MR]), b.length)
	if over > 0 || bytes > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(bytes)
}

// RDMAController returns the counts and limits of a cgroup. There are none unless the profile
// limits it.
func (h *Host) RDMAController(cgroup string) ([]owner.CgroupUse, error) {
	limits := make(map[string]int)
	var handles, objects int64
	for i := range h.batches {
		b := &h.batches[i]
		if b.holder == nil || b.holder.PID == 0 {
			continue
		}
		if b.holder.Cgroup == cgroup {
			for resource, n := range b.holder.RDMAMax {
				limits[resource] = n
			}
		} else if !strings.HasPrefix(b.holder.Cgroup, strings.TrimSuffix(cgroup, "/")+"/") {
			continue
		}
		for t, n := range b.objects {
			switch t {
			case restrack.CTX:
				handles += int64(n)
			case restrack.CMID: // The kernel does not count them.
			default:
				objects += int64(n)
			}
		}
	}
	if len(limits) == 0 {
		return nil, nil
	}
	uses := []owner.CgroupUse{
		{Device: h.device.Name, Resource: "hca_handle", Current: handles, Limit: -1},
		{Device: h.device.Name, Resource: "hca_object", Current: objects, Limit: -1},
	}
	for i := range uses {
		if n, ok := limits[uses[i].Resource]; ok {
			uses[i].Limit = int64(n)
		}
	}
	return uses, nil
}

// of returns the objects of a process that the exporter sees.
func (h *Host) of(pid int) (*batch, error) {
	for i := range h.batches {
		b := &h.batches[i]
		if b.row.Thread != 0 && int(b.row.Thread) == pid {
			return b, nil
		}
	}
	return nil, fmt.Errorf("process %d: %w", pid, owner.ErrGone)
}

func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
