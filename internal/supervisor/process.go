package supervisor

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pipeGrace is how long what is written to a child may stay unread once the child has
// ended. Only a process that it left behind can have it so.
const pipeGrace = 500 * time.Millisecond

// Command says how to start a child.
type Command struct {
	// Path is the program's file. It is not searched for.
	Path string
	// Name is the program's name, as ps shows it; Path if it is empty.
	Name string
	// Args are the arguments, without the program's name. No shell sees them.
	Args []string
	// Env is the environment, as in [os.Environ]; nil for that of this process.
	Env []string
	// Stdin is what the child can read from its standard input.
	Stdin []byte
}

// A process is a child that was started. All methods are safe for concurrent
// use.
type process interface {
	pid() int
	// output is the child's standard output. Whoever started the child closes
	// it. A close makes a read that waits return.
	output() io.ReadCloser
	// kill sends SIGKILL to the child's process group. It does nothing once the
	// child has ended, and does not wait for it to end.
	kill()
	// done is closed when the child has ended and nothing of it is left.
	done() <-chan struct{}
	// exit tells how the child ended, once done is closed.
	exit() exit
	// stderr tells what the child wrote to its standard error until now.
	stderr() stderr
}

// A launcher starts a child. Tests put another one in its place to have children
// that cannot be killed.
type launcher func(Command) (process, error)

// exit tells how a process ended and what it used.
type exit struct {
	// status is the exit status, if signal is zero.
	status int
	// signal is the signal that ended the process; zero for none.
	signal syscall.Signal
	// cpu is user and system time.
	cpu time.Duration
}

// ok reports whether the process ended by itself, with status 0.
func (e exit) ok() bool { return e.signal == 0 && e.status == 0 }

// fault reports whether the process ended by its own fault: a signal that comes of
// what a program does, or the status with which Go's runtime ends after one.
func (e exit) fault() bool {
	const crashed = 2
	switch e.signal {
	case 0:
		return e.status == crashed
	case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGABRT, syscall.SIGILL, syscall.SIGFPE, syscall.SIGTRAP:
		return true
	default:
		return false
	}
}

// String says how the process ended, such as "exit status 3".
func (e exit) String() string {
	if e.signal == 0 {
		return fmt.Sprintf("exit status %d", e.status)
	}
	if name := unix.SignalName(e.signal); name != "" {
		return "killed by " + name
	}
	return fmt.Sprintf("killed by signal %d", int(e.signal))
}

// execProcess is a process of the operating system.
type execProcess struct {
	cmd   *exec.Cmd
	out   *outputPipe
	errs  *errorPipe
	tail  tail
	ended chan struct{}
	// state is set before ended is closed.
	state exit

	mu sync.Mutex
	// reapable is set as soon as the child has ended: from then on its id may
	// become somebody else's.
	reapable bool
}

// launch starts a process of the operating system. It returns when the child
// runs its program.
func launch(c Command) (process, error) {
	p := &execProcess{ended: make(chan struct{})}
	r, w, err := newOutputPipe(p.ended)
	if err != nil {
		return nil, err
	}
	errs, errsW, err := newErrorPipe()
	if err != nil {
		_ = r.Close()
		_ = w.Close()
		return nil, err
	}
	p.out, p.errs = r, errs
	p.cmd = &exec.Cmd{
		Path:   c.Path,
		Args:   append([]string{cmp.Or(c.Name, c.Path)}, c.Args...),
		Env:    c.Env,
		Stdout: w,
		Stderr: errsW,
		// Wait must not wait for what the child left behind.
		WaitDelay: pipeGrace,
		SysProcAttr: &syscall.SysProcAttr{
			// A kill takes whatever the child started, too.
			Setpgid: true,
			// No child outlives this process, however this process ends. The kernel
			// drops this for a program that is set-user-ID or has file capabilities.
			Pdeathsig: syscall.SIGKILL,
		},
	}
	files := []io.Closer{w, errsW}
	if in := inputPipe(c.Stdin); in != nil {
		p.cmd.Stdin = in
		files = append(files, in)
	} else {
		p.cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	started := make(chan error, 1)
	go p.keep(files, started)
	if err := <-started; err != nil {
		_ = r.Close()
		_ = errs.Close()
		return nil, fmt.Errorf("start the child: %w", err)
	}
	return p, nil
}

// keep starts the child, closes the files that were for it alone, waits for its end
// and reaps it.
//
// What the kernel takes for the child's parent, when it looks for whose death is
// to kill the child, is the thread that forked it. A thread of the Go runtime may
// end at any time, if a goroutine locked to it ends. So this goroutine keeps its
// thread to itself for as long as the child lives.
func (p *execProcess) keep(files []io.Closer, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	err := startSlack(p.cmd)
	for _, f := range files {
		_ = f.Close()
	}
	started <- err
	if err != nil {
		return
	}
	copied := make(chan struct{})
	go func() {
		p.errs.copyTo(&p.tail)
		close(copied)
	}()
	awaitEnd(p.cmd.Process.Pid)
	p.mu.Lock()
	p.reapable = true
	// The child is not reaped yet, so its process group cannot be anybody else's.
	p.killGroup()
	p.mu.Unlock()

	// Wait's error says nothing that the state does not, but that pipes had to be
	// closed.
	_ = p.cmd.Wait()
	p.errs.end()
	<-copied
	_ = p.errs.Close()
	p.state = exitOf(p.cmd.ProcessState)
	close(p.ended)
}

// childSlack is how late a timer of a child may be. One thread of Go's runtime looks after
// the others: while any of them does something, it sleeps for 20 µs at a time, which is the
// better part of what wakes a process that lives for milliseconds. What a child waits for,
// such as an event, wakes it at once all the same.
const childSlack = time.Millisecond

// startSlack starts a command with that timer slack, which the kernel has a process inherit
// from the thread that forks it: when a child could ask for it, that thread is there already.
// The caller has its thread to itself. Without the slack all is as well, and costs more.
func startSlack(cmd *exec.Cmd) error {
	own, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err == nil && own < int(childSlack) && unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(childSlack), 0, 0, 0) == nil {
		defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(own), 0, 0, 0) }()
	}
	return cmd.Start()
}

// awaitEnd waits until a child has ended, and does not reap it.
//
// A thread that waits in the kernel without the runtime knowing for how long has the
// runtime look after it, some fifty times for each child; so the runtime's poller waits
// where the kernel has pidfds. Whether it has ended says waitid alone: a pidfd can be
// read before a child that is traced may be reaped, and at any time where there is no
// polling of them.
func awaitEnd(pid int) {
	if pidfd, err := unix.PidfdOpen(pid, 0); err == nil { // not reaped: the number is the child's
		awaitReadable(pidfd)
	}
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// awaitReadable waits until there is something to read from fd, if it can, and closes
// it.
func awaitReadable(fd int) {
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	defer func() { _ = file.Close() }() // nothing was written
	conn, err := file.SyscallConn()
	if err != nil {
		return
	}
	// An error means that it cannot be waited for.
	_ = conn.Read(func(fd uintptr) bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0
	})
}

func exitOf(s *os.ProcessState) exit {
	if s == nil {
		return exit{status: -1}
	}
	e := exit{cpu: s.UserTime() + s.SystemTime()}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signal() > 0 {
		e.signal = ws.Signal()
	} else {
		e.status = s.ExitCode()
	}
	return e
}

// killGroup is called with mu held.
func (p *execProcess) killGroup() {
	// Both fail only if nobody is left. The child may have left its own group.
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
	_ = unix.Kill(p.cmd.Process.Pid, unix.SIGKILL)
}

func (p *execProcess) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reapable {
		p.killGroup()
	}
}

func (p *execProcess) pid() int              { return p.cmd.Process.Pid }
func (p *execProcess) output() io.ReadCloser { return p.out }
func (p *execProcess) done() <-chan struct{} { return p.ended }
func (p *execProcess) exit() exit            { return p.state }
func (p *execProcess) stderr() stderr        { return p.tail.get() }
