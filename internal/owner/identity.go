package owner

import (
	"errors"
	"io/fs"
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
	// ContainerID, PodUID and Runtime are what [ParseCgroup] says of Cgroup or, if
	// that names no container, of the process's path in another hierarchy.
	ContainerID, PodUID, Runtime string
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
	if commErr != nil && cgroupErr != nil {
		return Identity{}, errors.Join(commErr, cgroupErr)
	}

	// Own decoding: procfs trims all white space, which may be part of the name.
	id := Identity{PID: pid, Comm: text(strings.TrimSuffix(string(comm), "\n"))}
	hierarchies, err := decodeCgroups(cgroup)
	if err != nil {
		return Identity{}, p.malformed("cgroup", err)
	}
	placed := order(hierarchies)
	id.Cgroup = text(pathOf(placed))
	id.ContainerID, id.PodUID, id.Runtime = containerOf(placed)
	return id, nil
}

// isWithheld reports whether a file of a process that is alive may not be read, or
// is not there: a kernel may be built without cgroups.
func isWithheld(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist)
}
