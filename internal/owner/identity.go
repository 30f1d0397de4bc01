package owner

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Identity is who a process is. It is a plain value. Bytes that are no UTF-8 have
// been replaced by U+FFFD; there may be control characters, and in Comm line
// breaks.
type Identity struct {
	// PID is the process, as it was asked for.
	PID int
	// Comm is the name of the command, from /proc/[pid]/comm: 15 bytes at most,
	// save for threads of the kernel. A process may set it to what it likes.
	Comm string
	// Cgroup is the path of the control group, as /proc/[pid]/cgroup has it and
	// [Reader.RDMAController] takes it, see cgroups(7). A path that climbs ("/../x")
	// is one outside of the cgroup namespace of this process; one of a cgroup that
	// was removed while the process was a zombie ends in " (deleted)".
	//
	// Where there are several hierarchies it is the path in that of the rdma
	// controller (version 1). Where that is not mounted it is the first path that
	// names a container, or else is not the root, of: version 2, name=systemd, pids,
	// memory, the others.
	Cgroup string
	// Started is when the process was started, in clock ticks since the kernel was: with PID
	// it names one process for as long as the kernel runs. It is field 22 of
	// /proc/[pid]/stat, see proc_pid_stat(5); 0 if that could not be read.
	Started uint64
	// ContainerID and PodUID are what [ParseCgroup] says of Cgroup or, if
	// that names no container, of the process's path in another hierarchy.
	ContainerID, PodUID string
}

// Identify tells who a process is. pid is a process; a thread's id gives the name
// of the thread.
//
// What this process may not read stays empty: the error is nil as long as anything
// could be read, and matches fs.ErrPermission if nothing could. If there is no such
// process, or if it ended meanwhile, errors.Is(err, ErrGone). A zombie is still
// there. Files with something else in them than the kernel writes are an error.
// With an error the Identity is zero.
func (r *Reader) Identify(pid int) (Identity, error) {
	p, err := r.open(pid)
	if err != nil {
		return Identity{}, err
	}
	defer p.close()

	comm, commErr := p.read("comm")
	if commErr != nil && !isWithheld(commErr) {
		return Identity{}, commErr
	}
	cgroup, cgroupErr := p.read("cgroup")
	if cgroupErr != nil && !isWithheld(cgroupErr) {
		return Identity{}, cgroupErr
	}
	stat, statErr := p.read("stat")
	if statErr != nil && !isWithheld(statErr) {
		return Identity{}, statErr
	}
	if commErr != nil && cgroupErr != nil {
		return Identity{}, errors.Join(commErr, cgroupErr)
	}

	// Own decoding: procfs trims all white space, which may be part of the name.
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
	return id, nil
}

// isWithheld reports whether a file of a process that is alive may not be read, or
// is not there: a kernel may be built without cgroups.
func isWithheld(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist)
}

// startField is the field of /proc/[pid]/stat with the start of the process, counted from
// the first after the name: that is in parentheses, and may have spaces and others in it.
const startField = 22 - 3

// decodeStarted returns when a process was started, from its /proc/[pid]/stat.
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
