package owner

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/test/running"
)

const childVariable = "OWNER_TEST_CHILD"

// locked is how much memory the child locks, in bytes.
const locked = 64 << 10

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "":
		os.Exit(m.Run())
	case "sleep":
		child(func() {})
	case "first thread ends":
		child(endFirstThread)
	}
}

// child locks memory, prepares, prints ready, and waits for the end of its standard input.
func child(prepare func()) {
	memory, err := unix.Mmap(-1, 0, locked, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil {
		err = unix.Mlock(memory)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	done := make(chan struct{})
	go func() {
		prepare()
		fmt.Println("ready")
		_, _ = os.Stdin.Read(make([]byte, 1))
		close(done)
	}()
	<-done
	os.Exit(0)
}

// endFirstThread ends the first thread of this process and no other.
func endFirstThread() {
	found := make(chan struct{})
	for range 64 {
		go func() {
			// Those that run on another thread keep it, so that one gets the first.
			runtime.LockOSThread()
			if unix.Gettid() == os.Getpid() {
				close(found)
				_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
			}
			select {}
		}()
	}
	<-found
	for {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", os.Getpid()))
		if strings.Contains(string(status), "State:\tZ") {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// start starts a child, and returns a function that ends it without reaping it.
func start(t *testing.T, kind string) (cmd *exec.Cmd, end func()) {
	t.Helper()
	exe := running.Must(os.Executable())(t)
	cmd = exec.Command(exe)
	cmd.Env = append(os.Environ(), childVariable+"="+kind)
	stdin, err := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	running.Check(t, errors.Join(err, err2, cmd.Start()))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return cmd, func() { _ = stdin.Close() }
}

func callAll(r *Reader, pid int) map[string]error {
	_, process := r.Process(pid)
	_, identify := r.Identify(pid)
	_, memlock := r.Memlock(pid)
	return map[string]error{"Process": process, "Identify": identify, "Memlock": memlock}
}

func TestSelf(t *testing.T) {
	r := readerOf(t, "/proc", "/sys/fs/cgroup")
	self := os.Getpid()

	comm, err := os.ReadFile("/proc/self/comm")
	cgroup, err2 := os.ReadFile("/proc/self/cgroup")
	running.Check(t, errors.Join(err, err2))
	id, err := r.Identify(self)
	in := strings.Contains(string(cgroup), ":"+id.Cgroup+"\n")
	if err != nil || id.PID != self || id.Comm+"\n" != string(comm) || !in {
		t.Errorf("got %+v, %v, of %s", id, err, cgroup)
	}
	// The parent was started before, or in the same tick.
	if parent, err := r.Identify(os.Getppid()); err == nil && (id.Started == 0 || parent.Started > id.Started) {
		t.Errorf("started at %d, its parent at %d", id.Started, parent.Started)
	}

	var limit unix.Rlimit
	var ns unix.Stat_t
	running.Check(t, errors.Join(unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit), unix.Stat("/proc/self/ns/pid", &ns)))
	want := int64(limit.Cur)
	if limit.Cur == unix.RLIM_INFINITY {
		want = -1
	}
	if m, err := r.Memlock(self); err != nil || m.Limit != want {
		t.Errorf("got %+v, %v, want the limit %d", m, err, want)
	}
	gives(t, "sees all PIDs", ns.Ino == initPIDNamespace)(r.SeesAllPIDs())
	// To kill(2), groups of processes.
	for _, pid := range []int{0, -1, -self} {
		fails[int](t, pid, ErrGone)(r.Process(pid))
	}
	if _, err := r.RDMAController(id.Cgroup); err != nil && !errors.Is(err, ErrOutside) {
		t.Errorf("got %v", err)
	}
}

// TestLife follows a process: alive, a zombie, and gone.
func TestLife(t *testing.T) {
	r := readerOf(t, "/proc", "/sys/fs/cgroup")
	cmd, end := start(t, "sleep")
	pid := cmd.Process.Pid
	alive, err := r.Memlock(pid)
	if err != nil || alive.Locked != locked {
		t.Errorf("got %+v, %v, want %d bytes locked", alive, err, locked)
	}
	// As if a call was in the middle when the process ends.
	p := running.Must(r.open(pid))(t)
	defer p.close()
	if _, err := p.read("comm"); err != nil {
		t.Error(err)
	}

	end()
	var info unix.Siginfo
	running.Check(t, unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	if id, err := r.Identify(pid); err != nil || id.Comm == "" {
		t.Errorf("a zombie: got %+v, %v", id, err)
	}
	gives(t, "a zombie", Memlock{Limit: alive.Limit})(r.Memlock(pid))

	running.Check(t, cmd.Wait())
	for _, file := range []string{"comm", "cgroup", "status", "limits"} {
		fails[[]byte](t, file, ErrGone)(p.read(file))
	}
	for call, err := range callAll(r, pid) {
		if !errors.Is(err, ErrGone) {
			t.Errorf("%s: got %v, want ErrGone", call, err)
		}
	}
}

func TestFirstThreadEnded(t *testing.T) {
	r := readerOf(t, "/proc", "/sys/fs/cgroup")
	cmd, _ := start(t, "first thread ends")
	if got, err := r.Memlock(cmd.Process.Pid); err != nil || got.Locked != locked {
		t.Errorf("got %+v, %v, want %d bytes locked", got, err, locked)
	}
	gives(t, "its process", cmd.Process.Pid)(r.Process(cmd.Process.Pid))
}

// TestHidden verifies that a process that /proc hides is not taken for dead.
func TestHidden(t *testing.T) {
	dir := t.TempDir()
	fails[int](t, "another directory", ErrGone)(readerOf(t, dir, dir).Process(os.Getpid()))
	host{t: t}.symlink(strconv.Itoa(os.Getpid()), dir+"/self")
	r := readerOf(t, dir, dir)
	fails[int](t, "a directory like /proc", ErrGone)(r.Process(os.Getpid()))
	r.alive = answersSignals
	for call, err := range callAll(r, os.Getpid()) {
		if !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrGone) {
			t.Errorf("%s: got %v, want fs.ErrPermission", call, err)
		}
	}
}

// TestThreads verifies that any thread is found, and belongs to its process.
func TestThreads(t *testing.T) {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil || len(entries) < 2 {
		t.Fatal(entries, err)
	}
	r := readerOf(t, "/proc", "/sys/fs/cgroup")
	for _, e := range entries {
		thread := running.Must(strconv.Atoi(e.Name()))(t)
		pid, process := r.Process(thread)
		answers := answersSignals(thread)
		_, err = os.Stat("/proc/self/task/" + e.Name())
		if lives := err == nil; lives && (!answers || process != nil || pid != os.Getpid()) {
			t.Errorf("thread %d answers: %t, its process is %d, %v", thread, answers, pid, process)
		}
	}
	if answersSignals(1 << 30) {
		t.Error("a thread that cannot be answers")
	}
	foreign := make(chan bool)
	go func() {
		// The thread is never unlocked, and so ends with its user.
		runtime.LockOSThread()
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETRESUID, 65534, 65534, 65534)
		foreign <- answersSignals(1)
	}()
	if !<-foreign {
		t.Error("a process of another user does not answer")
	}
}

// TestPipe verifies that a pipe in place of a file does not block.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	running.Check(t, errors.Join(os.Mkdir(dir+"/7", 0o755), unix.Mkfifo(dir+"/7/status", 0o644)))
	fails[int](t, "a pipe", errEmpty)(readerOf(t, dir, dir).Process(7))
}
