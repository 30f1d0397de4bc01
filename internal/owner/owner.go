// Package owner identifies processes by /proc and the cgroup file systems. The kernel names the
// owner of an RDMA object by the id of a thread. This package finds its process, the command,
// control group, container and pod, the locked memory, and the counts of the RDMA controller of its
// cgroup. It only reads, on Linux.
//
// # Races
//
// Processes end and their ids are used again. The files of a process are read relative to its
// directory, which is opened once per call, so one call returns data of one process. If it has
// ended, the kernel refuses to read on, even if another process has the id, and the call returns
// [ErrGone]. Package procfs opens each file by its path, reads missing and malformed values as 0,
// and truncates long files, so it is not used here. Between two calls an id may be reused, once the
// kernel has given out all others.
//
// # Trust
//
// Processes choose the names of their commands, and any program that may create cgroups chooses
// their names. It can imitate a process of another container. The results help to find an owner,
// but prove nothing.
package owner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxFile limits the size of a file, in bytes, so that an odd file cannot fill the memory. Longer
// files are refused. The longest legitimate ones are the status of a process with 65536
// supplementary groups, and the RDMA controller's on a host with thousands of devices.
const maxFile = 1 << 20

// initPIDNamespace is the inode of the host's first pid namespace, PROC_PID_INIT_INO in the kernel's
// include/linux/proc_ns.h.
const initPIDNamespace = 0xEFFFFFFC

// ErrGone is matched by errors if a process or thread does not exist, or has ended.
var ErrGone = errors.New("no such process")

// errEmpty is a file of /proc that must not be empty.
var errEmpty = errors.New("is empty")

// A Reader identifies processes. It is not safe for concurrent use. It holds no file open between
// calls, so it needs no closing.
type Reader struct {
	procRoot, cgroupRoot string
	// alive reports whether a process exists that /proc does not show.
	alive func(pid int) bool
}

// New returns a Reader of the proc file system at procRoot, usually /proc, and the cgroup file
// systems at and below cgroupRoot, usually /sys/fs/cgroup.
//
// Process ids are from the pid namespace of procRoot's mount. It should be that of this process, in
// which the kernel names the owners of RDMA objects. Likewise cgroupRoot should be mounted in the
// cgroup namespace of this process (cgroup_namespaces(7)).
//
// It is an error if procRoot cannot be read, or belongs to another pid namespace. cgroupRoot may be
// absent.
func New(procRoot, cgroupRoot string) (*Reader, error) {
	dir, err := os.Open(procRoot)
	if err != nil {
		return nil, fmt.Errorf("the proc file system: %w", err)
	}
	defer func() { _ = dir.Close() }()
	if _, err := dir.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the proc file system: %w", err)
	}
	r := &Reader{procRoot: procRoot, cgroupRoot: cgroupRoot, alive: func(int) bool { return false }}
	isProc, isOwn := procOf(procRoot)
	if isProc && !isOwn {
		return nil, fmt.Errorf("the proc file system: %s is that of another pid namespace than this process is in: use its own, usually /proc", procRoot)
	}
	if isOwn {
		r.alive = answersSignals
	}
	return r, nil
}

// procOf reports whether a directory is a proc file system, and one of this process's pid namespace.
func procOf(dir string) (isProc, isOwn bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil || s.Type != unix.PROC_SUPER_MAGIC {
		return false, false
	}
	self, err := os.Readlink(filepath.Join(dir, "self"))
	return true, err == nil && self == strconv.Itoa(os.Getpid())
}

// answersSignals reports whether a process or thread exists, by kill(2) without a signal. Unlike in
// /proc, the mount options hidepid=invisible and hidepid=ptraceable cannot hide it.
func answersSignals(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// SeesAllPIDs reports whether this process lives in the host's first pid namespace, where each
// process of the host has an id. There, an object without an owner belongs to a dead process.
// Elsewhere it may belong to a process in another namespace. See pid_namespaces(7).
//
// It reads the link /proc/self/ns/pid, which fails in the procRoot of another pid namespace.
func (r *Reader) SeesAllPIDs() (bool, error) {
	target, err := os.Readlink(filepath.Join(r.procRoot, "self", "ns", "pid"))
	if err != nil {
		return false, fmt.Errorf("the pid namespace: %w", err)
	}
	number, ok := strings.CutPrefix(target, "pid:[")
	number, closed := strings.CutSuffix(number, "]")
	inode, err := strconv.ParseUint(number, 10, 64)
	if !ok || !closed || err != nil {
		return false, fmt.Errorf("the pid namespace is %q instead of pid:[inode]", target)
	}
	return inode == initPIDNamespace, nil
}

// Process returns the process of a thread, the Tgid of /proc/[tid]/status, see proc_pid_status(5).
// The first thread of a process has the same number.
//
// The error matches ErrGone if there is no such thread, and fs.ErrPermission if it may not be read.
func (r *Reader) Process(thread int) (pid int, err error) { return r.related(thread, "Tgid") }

// Parent returns the parent of a process, its PPid. Zero means that it has none in this pid
// namespace. Errors are those of [Reader.Process].
func (r *Reader) Parent(pid int) (parent int, err error) { return r.related(pid, "PPid") }

// related returns the process in a field of the status of a thread.
func (r *Reader) related(thread int, field string) (pid int, err error) {
	p, err := r.open(thread)
	if err != nil {
		return 0, err
	}
	defer p.close()
	status, err := p.read("status")
	if err != nil {
		return 0, err
	}
	value, found, err := statusField(status, field)
	if err != nil {
		return 0, p.malformed("status", err)
	}
	if !found {
		return 0, p.malformed("status", fmt.Errorf("has no line %s", field))
	}
	pid, err = strconv.Atoi(value)
	if err != nil || pid < 0 || pid == 0 && field == "Tgid" {
		return 0, p.malformed("status", fmt.Errorf("the %s is %q", field, value))
	}
	return pid, nil
}

// A process is the open directory of a process in /proc.
type process struct {
	r   *Reader
	pid int
	dir *os.Root
}

// open opens the directory of a process or thread. The caller closes it.
func (r *Reader) open(pid int) (*process, error) {
	if pid <= 0 {
		// To kill(2) these would be groups of processes.
		return nil, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	path := filepath.Join(r.procRoot, strconv.Itoa(pid))
	dir, err := os.OpenRoot(path)
	if isGone(err) {
		if !r.alive(pid) {
			return nil, fmt.Errorf("process %d: %w", pid, ErrGone)
		}
		// It is hidden, or has just been created.
		dir, err = os.OpenRoot(path)
		if isGone(err) {
			return nil, fmt.Errorf("process %d is hidden: %w", pid, fs.ErrPermission)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return &process{r: r, pid: pid, dir: dir}, nil
}

func (p *process) close() { _ = p.dir.Close() } // nothing was written

// read reads a file of the process. The error matches ErrGone if the process has
// ended, fs.ErrNotExist if it is alive and has no such file, or fs.ErrPermission.
func (p *process) read(name string) ([]byte, error) {
	data, err := readFile(p.dir, name)
	if err == nil && len(data) == 0 && name != "cgroup" {
		// The limits of a process that is being removed are empty. Without a mounted hierarchy
		// cgroup is empty.
		err = errEmpty
	}
	if err != nil {
		return nil, p.explain(name, err)
	}
	return data, nil
}

// explain finds out why a file of the process could not be read.
func (p *process) explain(name string, err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d: %w", p.pid, ErrGone)
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errEmpty) {
		return fmt.Errorf("process %d: %w", p.pid, err)
	}
	// Each process has a status. If that exists, only this file is missing.
	if name != "status" || errors.Is(err, errEmpty) {
		if _, statusErr := p.dir.Stat("status"); statusErr == nil {
			return fmt.Errorf("process %d: %s: %w", p.pid, name, err)
		}
	}
	// The process has ended, or has just been hidden. If its id has a directory, that belongs to
	// another process.
	again, err := p.r.open(p.pid)
	if err == nil {
		again.close()
		err = fmt.Errorf("process %d: %w", p.pid, ErrGone)
	}
	return err
}

func (p *process) malformed(name string, err error) error {
	return fmt.Errorf("process %d: %s: %w", p.pid, name, err)
}

// isGone reports whether an error says that a file or a process is not there.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// readFile reads a file in a directory, of at most maxFile bytes. It does not wait, even if the file
// is a pipe.
func readFile(dir *os.Root, name string) ([]byte, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: longer than %d bytes", name, maxFile)
	}
	return data, nil
}

// text returns valid UTF-8, as labels need.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
