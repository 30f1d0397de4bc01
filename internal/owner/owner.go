// Package owner tells who a process is, from /proc and the cgroup file systems.
// The kernel names the owner of an RDMA object by the id of a thread; this
// package leads from there to the process, its command and control group, the
// container and the pod it runs in, how much memory it holds in place, and what
// the RDMA controller of its cgroup counts. It only reads, for Linux only, and
// imports nothing of this module.
//
// # Races
//
// Processes end and their ids are used again. The files of a process are read
// relative to its directory, which is opened once per call, so that what one
// call returns is of one process: if it ended meanwhile the kernel refuses to
// read on, even if another process has its id by then, and the call returns
// [ErrGone]. That is why package procfs, which resolves the path for each file
// anew, does not serve here. It also takes missing and malformed values for 0,
// and cuts long files off without an error. Between two calls an id may change
// hands: the kernel hands ids out in turn, so that this takes a whole round of
// pid_max, but it can happen.
//
// # Trust
//
// Names of commands are chosen by the processes, and whoever may create cgroups
// chooses their names. So a process in a container that may create cgroups can
// pose as one in another container. What this package returns is good for
// finding an owner, not for holding it to account.
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

// maxFile is how many bytes of a file are read. What is longer is refused, so
// that an odd file cannot fill the memory. The longest that are read for good
// reasons are the status of a process with 65536 supplementary groups and the
// file of the RDMA controller on a host with thousands of devices.
const maxFile = 1 << 20

// initPIDNamespace is the inode of the host's first pid namespace,
// PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h.
const initPIDNamespace = 0xEFFFFFFC

// ErrGone is what [Reader.Process], [Reader.Identify] and [Reader.Memlock] return,
// wrapped, if there is no such process or thread, or none any more.
var ErrGone = errors.New("no such process")

// errEmpty is a file of /proc that has to say something and doesn't.
var errEmpty = errors.New("is empty")

// A Reader reads who a process is. It is made by [New] and serves one goroutine
// at a time. It holds no file open between calls, so it needs no closing.
type Reader struct {
	procRoot, cgroupRoot string
	// alive tells whether a process that /proc does not show exists all the same.
	alive func(pid int) bool
}

// New returns a Reader of the proc file system at procRoot, mostly /proc, and the
// cgroup file systems at and below cgroupRoot, mostly /sys/fs/cgroup.
//
// Process ids are those of the pid namespace that procRoot was mounted in, which
// should be that of this process, because the kernel names the owners of RDMA
// objects in the terms of whoever asks. Likewise cgroupRoot should have been
// mounted in the cgroup namespace of this process (cgroup_namespaces(7)).
//
// It is an error if procRoot cannot be read, or is a proc file system of another pid
// namespace. Nothing has to be at cgroupRoot.
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
		return nil, fmt.Errorf("the proc file system: %s is that of another pid namespace than this process is in: use its own, mostly /proc", procRoot)
	}
	if isOwn {
		r.alive = answersSignals
	}
	return r, nil
}

// procOf reports whether a directory is a proc file system, and one whose process
// ids are those of the system calls of this process.
func procOf(dir string) (isProc, isOwn bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil || s.Type != unix.PROC_SUPER_MAGIC {
		return false, false
	}
	self, err := os.Readlink(filepath.Join(dir, "self"))
	return true, err == nil && self == strconv.Itoa(os.Getpid())
}

// answersSignals reports whether there is a process or thread of that id, by
// kill(2) with no signal. Unlike /proc it is not subject to the mount options
// hidepid=invisible and hidepid=ptraceable, which make processes of others look
// as if they did not exist.
func answersSignals(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// SeesAllPIDs reports whether this process lives in the host's first pid
// namespace. Then each process of the host has an id here, so that an object whose
// owner the kernel does not name is one of a process that is dead; elsewhere it may
// be of a process in another namespace. See pid_namespaces(7).
//
// It reads the link /proc/self/ns/pid, so it is an error if the procRoot given to
// [New] is of a pid namespace that this process is not part of.
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

// Process returns the process (thread group) that a thread belongs to; of the first
// thread of a process that is the same number. It is the Tgid of
// /proc/[tid]/status, see proc_pid_status(5).
//
// If there is no such thread, errors.Is(err, ErrGone). If there is one that this
// process may not look at, errors.Is(err, fs.ErrPermission).
func (r *Reader) Process(thread int) (pid int, err error) { return r.related(thread, "Tgid") }

// Parent returns the parent of a process, its PPid; 0 if that is in another pid
// namespace, or none. Errors are those of [Reader.Process].
func (r *Reader) Parent(pid int) (parent int, err error) { return r.related(pid, "PPid") }

// related returns the process that a field of the status of a thread names.
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
		// It is hidden, or it has come up since, with the id of one that is gone.
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

// close closes the directory. There is nothing to be lost if that fails.
func (p *process) close() { _ = p.dir.Close() }

// read reads a file of the process. The error matches ErrGone if the process has
// ended, fs.ErrNotExist if it is alive and has no such file, or fs.ErrPermission.
func (p *process) read(name string) ([]byte, error) {
	data, err := readFile(p.dir, name)
	if err == nil && len(data) == 0 && name != "cgroup" {
		// The limits of a process that is being removed are empty. A kernel on which
		// no hierarchy is mounted has nothing to say about cgroups.
		err = errEmpty
	}
	if err != nil {
		return nil, p.explain(name, err)
	}
	return data, nil
}

// explain turns the error of reading a file of the process into what is told.
func (p *process) explain(name string, err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d: %w", p.pid, ErrGone)
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errEmpty) {
		return fmt.Errorf("process %d: %w", p.pid, err)
	}
	// Each process has a status. If that is there, this file is missing indeed.
	if name != "status" || errors.Is(err, errEmpty) {
		if _, statusErr := p.dir.Stat("status"); statusErr == nil {
			return fmt.Errorf("process %d: %s: %w", p.pid, name, err)
		}
	}
	// The process has ended, or has just been hidden. If its id leads to a
	// directory, that is another process's.
	again, err := p.r.open(p.pid)
	if err == nil {
		again.close()
		err = fmt.Errorf("process %d: %w", p.pid, ErrGone)
	}
	return err
}

// malformed is the error of a file that does not say what it should.
func (p *process) malformed(name string, err error) error {
	return fmt.Errorf("process %d: %s: %w", p.pid, name, err)
}

// isGone reports whether an error says that a file or a process is not there.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// readFile reads a file that is within a directory and has maxFile bytes at most.
// It does not wait for anything: a pipe in place of the file would make it.
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

// text is what a file says, fit to be a label: what is no UTF-8 is replaced by
// U+FFFD.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
