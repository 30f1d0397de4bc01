//go:build vm

package softroce

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/test/running"
)

// refuseVariable makes TestRefuseSystemCalls a program that runs another.
const refuseVariable = "SOFTROCE_REFUSE_SYSTEM_CALLS"

// byContainers stands for the system calls that container runtimes refuse.
const byContainers = "by containers"

// refuseSystemCalls runs the command that follows it with system calls refused: the one of this number,
// or those of byContainers.
func refuseSystemCalls(which string) []string {
	return []string{"env", refuseVariable + "=" + which, os.Args[0], "-test.run=^TestRefuseSystemCalls$", "--"}
}

// TestRefuseSystemCalls is no test, but a program that becomes another one, whose
// system calls are filtered, if the variable says so.
func TestRefuseSystemCalls(t *testing.T) {
	if os.Getenv(refuseVariable) == "" {
		return
	}
	var args []string
	for i, a := range os.Args {
		if a == "--" {
			args = os.Args[i+1:]
			break
		}
	}
	path := running.Must(exec.LookPath(args[0]))(t)
	// The filter is that of the thread that becomes the program.
	runtime.LockOSThread()
	program := filter(denied(t))
	length := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&length))); errno != 0 {
		t.Fatalf("seccomp: %v", errno)
	}
	t.Fatal(syscall.Exec(path, args, os.Environ()))
}

// denied returns the number of the system call that the variable has. For byContainers they are those
// that container runtimes refuse to processes without capabilities: those that change the host, its
// clock, modules, mounts and namespaces, look into other processes, or have keys, traces or memory
// policies.
func denied(t *testing.T) []uint32 {
	if which := os.Getenv(refuseVariable); which != byContainers {
		number := running.Must(strconv.ParseUint(which, 10, 32))(t)
		return []uint32{uint32(number)}
	}
	return []uint32{
		unix.SYS_ACCT, unix.SYS_ADD_KEY, unix.SYS_BPF, unix.SYS_CLOCK_ADJTIME, unix.SYS_CLOCK_SETTIME,
		unix.SYS_DELETE_MODULE, unix.SYS_FANOTIFY_INIT, unix.SYS_FINIT_MODULE, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSOPEN,
		unix.SYS_GET_MEMPOLICY, unix.SYS_INIT_MODULE, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_IO_URING_SETUP,
		unix.SYS_IOPERM, unix.SYS_IOPL, unix.SYS_KCMP, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_KEXEC_LOAD, unix.SYS_KEYCTL,
		unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MBIND, unix.SYS_MIGRATE_PAGES, unix.SYS_MOUNT, unix.SYS_MOVE_MOUNT, unix.SYS_MOVE_PAGES,
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_OPEN_TREE, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PERSONALITY,
		unix.SYS_PIVOT_ROOT, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PTRACE, unix.SYS_QUOTACTL,
		unix.SYS_REBOOT, unix.SYS_REQUEST_KEY, unix.SYS_SET_MEMPOLICY, unix.SYS_SETDOMAINNAME, unix.SYS_SETHOSTNAME, unix.SYS_SETNS,
		unix.SYS_SETTIMEOFDAY, unix.SYS_SWAPOFF, unix.SYS_SWAPON, unix.SYS_SYSLOG, unix.SYS_UMOUNT2, unix.SYS_UNSHARE,
		unix.SYS_USERFAULTFD, unix.SYS_USTAT, unix.SYS_VHANGUP,
	}
}

// filter refuses system calls with EPERM.
func filter(refused []uint32) []unix.SockFilter {
	// The first field of what a filter is given is the number of the system call.
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for _, number := range refused {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: number},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	}
	return append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
}
