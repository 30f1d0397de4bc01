package owner

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Identity identifies a process. It is valid UTF-8, with U+FFFD for other bytes. It may have control
// characters, and Comm line breaks.
type Identity struct {
	PID int
	// Comm is the name of the command, from /proc/[pid]/comm: at most 15 bytes, except for kernel
	// threads. A process may set it freely.
	Comm string
	// Cgroup is the path of the control group in /proc/[pid]/cgroup, see cgroups(7), for
	// [Reader.RDMAController]. A path that climbs ("/../x") is outside this process's cgroup
	// namespace. It ends in " (deleted)" if the cgroup was removed while the process was a zombie.
	//
	// With several hierarchies it is the path in that of the rdma controller (version 1). If that
	// is not mounted, it is the first path that names a container, or else is not the root, in
	// this order: version 2, name=systemd, pids, memory, the others.
	Cgroup string
	// Started is the start of the process in clock ticks since boot. With PID it identifies a
	// process until the next boot. It is field 22 of /proc/[pid]/stat, see proc_pid_stat(5).
	// Zero means that it could not be read.
	Started uint64
	// ContainerID and PodUID are from [ParseCgroup] of Cgroup, or of the path in another hierarchy
	// if Cgroup names no container.
	ContainerID, PodUID string
	// SlurmJobID is from [SlurmJob] of the path in any hierarchy.
	SlurmJobID string
}

// Identify identifies a process. The id of a thread gives the name of the thread.
//
// Fields that this process may not read stay empty. The error matches fs.ErrPermission if nothing
// could be read, and ErrGone if there is no such process or it has ended. A zombie still exists.
// Malformed files are an error. With an error the Identity is zero.
func (r *Reader) Identify(pid int) (Identity, error) {
	p, err := r.open(pid)
	if err != nil {
		return Identity{}, err
	}
	defer p.close()

	comm, commErr := p.read("comm")
	cgroup, cgroupErr := p.read("cgroup")
	stat, statErr := p.read("stat")
	for _, err := range []error{commErr, cgroupErr, statErr} {
		if err != nil && !isWithheld(err) {
			return Identity{}, err
		}
	}
	if commErr != nil && cgroupErr != nil {
		return Identity{}, errors.Join(commErr, cgroupErr)
	}

	// Package procfs trims white space, which may be part of the name.
	id := Identity{PID: pid, Comm: text(strings.TrimSuffix(string(comm), "\n"))}
	hierarchies, err := decodeCgroups(cgroup)
	if err != nil {
		return Identity{}, p.malformed("cgroup", err)
	}
	if statErr == nil {
		if id.Started, err = decodeStarted(stat); err != nil {
			return Identity{}, p.malformed("stat", err)
		}
	}
	placed := order(hierarchies)
	id.Cgroup = text(pathOf(placed))
	id.ContainerID, id.PodUID = containerOf(placed)
	for _, h := range placed {
		id.SlurmJobID = cmp.Or(id.SlurmJobID, SlurmJob(h.path))
	}
	return id, nil
}

// isWithheld reports whether a file of a living process may not be read or does not exist. A kernel
// may be built without cgroups.
func isWithheld(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist)
}

// startField is the start of the process in /proc/[pid]/stat, counted from the first field after the
// name, which is in parentheses and may contain spaces and parentheses.
const startField = 22 - 3

// decodeStarted returns the start of a process from its /proc/[pid]/stat.
func decodeStarted(stat []byte) (ticks uint64, err error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= startField {
		return 0, fmt.Errorf("has %d fields after the name, no start of the process", len(fields))
	}
	if ticks, err = strconv.ParseUint(fields[startField], 10, 64); err != nil {
		return 0, fmt.Errorf("the start of the process is %q", fields[startField])
	}
	return ticks, nil
}
