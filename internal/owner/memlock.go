package owner

import (
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
)

// maxThreads limits the threads that are read if the first thread has ended.
const maxThreads = 64

// Memlock is the locked memory of a process and its limit, in bytes. The kernel compares Pinned and
// Locked with the limit separately, not their sum, and neither if the process has CAP_IPC_LOCK.
type Memlock struct {
	// Pinned is memory that drivers pin for the process, as for memory regions and queues: VmPin
	// of proc_pid_status(5).
	Pinned int64
	// Locked is memory that the process locked, as by mlock(2): VmLck.
	Locked int64
	// Limit is its soft RLIMIT_MEMLOCK, see getrlimit(2), at most math.MaxInt64. −1 is unlimited.
	Limit int64
}

// Memlock returns the locked memory of a process. Kernel threads and zombies have none. If only the
// first thread of a process has ended, another is read.
//
// The error matches ErrGone if there is no such process or it has ended, and fs.ErrPermission if it
// may not be read. Missing or malformed values are an error. With an error the Memlock is zero.
func (r *Reader) Memlock(pid int) (Memlock, error) {
	p, err := r.open(pid)
	if err != nil {
		return Memlock{}, err
	}
	defer p.close()

	status, err := p.read("status")
	if err != nil {
		return Memlock{}, err
	}
	m, found, err := lockedMemory(status)
	if err == nil && !found {
		m, err = p.askThreads()
	}
	if err != nil {
		return Memlock{}, p.malformed("status", err)
	}
	limits, err := p.read("limits")
	if err != nil {
		return Memlock{}, err
	}
	m.Limit, err = memlockLimit(limits)
	if err != nil {
		return Memlock{}, p.malformed("limits", err)
	}
	return m, nil
}

// askThreads returns the memory of the first thread that has any. Threads share it until they end.
func (p *process) askThreads() (Memlock, error) {
	dir, err := p.dir.Open("task")
	if err != nil {
		return Memlock{}, p.explain("task", err)
	}
	defer func() { _ = dir.Close() }()
	// If the process has ended, reading its limits fails.
	names, _ := dir.Readdirnames(maxThreads)
	for _, name := range names {
		status, err := readFile(p.dir, path.Join("task", name, "status"))
		if isGone(err) {
			continue
		}
		if err != nil {
			return Memlock{}, err
		}
		m, found, err := lockedMemory(status)
		if err != nil || found {
			return m, err
		}
	}
	return Memlock{}, nil
}

// lockedMemory returns VmPin and VmLck of a status. Neither exists without memory, and one without
// the other is an error. Package procfs reads missing and malformed values as 0.
func lockedMemory(status []byte) (m Memlock, found bool, err error) {
	pinned, hasPinned, err := kilobytes(status, "VmPin")
	if err != nil {
		return Memlock{}, false, err
	}
	locked, hasLocked, err := kilobytes(status, "VmLck")
	if err != nil {
		return Memlock{}, false, err
	}
	if hasPinned != hasLocked {
		return Memlock{}, false, errors.New("has only one of VmPin and VmLck")
	}
	return Memlock{Pinned: pinned, Locked: locked}, hasPinned, nil
}

// kilobytes returns a value of a status in bytes. Its kB are 1024 bytes.
func kilobytes(status []byte, key string) (bytes int64, found bool, err error) {
	value, found, err := statusField(status, key)
	if err != nil || !found {
		return 0, false, err
	}
	number, unit, _ := strings.Cut(value, " ")
	n, err := strconv.ParseUint(number, 10, 63-10)
	if err != nil || unit != "kB" {
		return 0, false, fmt.Errorf("%s is %q instead of a number of kB", key, value)
	}
	return int64(n) << 10, true, nil
}

// statusField returns the value of a line of a status. Processes choose only Name, whose line breaks
// are escaped, so it cannot imitate another line.
func statusField(status []byte, key string) (value string, found bool, err error) {
	for line := range strings.Lines(string(status)) {
		v, ok := strings.CutPrefix(line, key+":")
		if !ok {
			continue
		}
		if found {
			return "", false, fmt.Errorf("has two lines %s", key)
		}
		value, found = strings.TrimSpace(v), true
	}
	return value, found, nil
}

// memlockLimit returns the soft limit of locked memory in /proc/[pid]/limits. Package procfs reads a
// missing line as 0.
func memlockLimit(limits []byte) (int64, error) {
	for line := range strings.Lines(string(limits)) {
		rest, ok := strings.CutPrefix(line, "Max locked memory ")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) != 3 || fields[2] != "bytes" {
			return 0, fmt.Errorf("%q is not a soft and a hard limit in bytes", line)
		}
		if fields[0] == "unlimited" {
			return -1, nil
		}
		n, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("the limit of locked memory is %q", fields[0])
		}
		return int64(min(n, math.MaxInt64)), nil
	}
	return 0, errors.New("has no limit of locked memory")
}
