// Package child runs a program in a process of its own, which ends with this process at the latest.
package child

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// stderrGrace limits how long standard error is read once the child has ended. A process
	// that the child left behind can hold it open forever.
	stderrGrace = 5 * time.Second
	// drainStep is how often the pipe of an ended child is looked at, and maxDrained limits how
	// many bytes are read from it: more than a pipe holds, so the child has not written them.
	drainStep  = 10 * time.Millisecond
	maxDrained = 2 << 20
)

// Command describes how to start a child.
type Command struct {
	// Path is the program's file. It is not searched for.
	Path string
	// Name is the program's name, as ps shows it. Empty means Path.
	Name string
	// Args are the arguments, without the program's name. No shell sees them.
	Args []string
	// Env is the environment, as in [os.Environ]. Nil means that of this process.
	Env []string
	// Stdin is the child's standard input.
	Stdin []byte
	// Extra, if not nil, is the child's file descriptor ExtraFD. Start closes it in this process.
	Extra *os.File
}

// ExtraFD is the file descriptor of Command.Extra in the child.
const ExtraFD = 3

// A Process is a child that was started. All methods are safe for concurrent use.
type Process interface {
	// PID returns zero until the child runs its program.
	PID() int
	// Kill sends SIGKILL to the child's process group, at once or when it starts. It does
	// nothing once the child has ended, and does not wait for it to end.
	Kill()
	// Done is closed when the child has ended, nothing of it is left, and its output
	// is written and closed.
	Done() <-chan struct{}
	// Exit returns how the child ended, once Done is closed.
	Exit() Exit
	// Stderr returns what the child wrote to its standard error until now.
	Stderr() Stderr
}

// Exit is how a process ended and what it used.
type Exit struct {
	// Err is why the child could not be started. Nil if it was.
	Err error
	// Status is the exit status, if Signal is zero.
	Status int
	// Signal is the signal that ended the process. Zero means none.
	Signal syscall.Signal
	// CPU is user and system time.
	CPU time.Duration
}

// Ok reports whether the process ended by itself, with status 0.
func (e Exit) Ok() bool { return e.Signal == 0 && e.Status == 0 }

// Fault reports whether the process ended by its own fault. That is a signal that comes of
// what a program does, or the status with which Go's runtime ends after one.
func (e Exit) Fault() bool {
	const crashed = 2
	own := []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGABRT, syscall.SIGILL, syscall.SIGFPE, syscall.SIGTRAP}
	return e.Signal == 0 && e.Status == crashed || slices.Contains(own, e.Signal)
}

// String says how the process ended, such as "exit status 3".
func (e Exit) String() string {
	if e.Signal == 0 {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return "killed by " + cmp.Or(unix.SignalName(e.Signal), e.Signal.String())
}

type execProcess struct {
	cmd   *exec.Cmd
	tail  tail
	ended chan struct{}
	// state is set before ended is closed.
	state Exit

	mu sync.Mutex
	// started and killed are true if it was. reapable is true once the child has ended. From
	// then on, its id may be another process's.
	started, killed, reapable bool
}

// Start starts a child and writes its standard output to out, which it closes when the child has
// ended. It does not wait until the program is loaded.
func Start(c Command, out io.WriteCloser) Process {
	p := &execProcess{ended: make(chan struct{})}
	p.cmd = &exec.Cmd{
		Path:      c.Path,
		Args:      append([]string{cmp.Or(c.Name, c.Path)}, c.Args...),
		Env:       c.Env,
		Stdin:     bytes.NewReader(c.Stdin),
		Stderr:    &p.tail,
		WaitDelay: stderrGrace,
		SysProcAttr: &syscall.SysProcAttr{
			// A kill takes whatever the child started, too.
			Setpgid: true,
			// No child outlives this process, however this process ends. The kernel
			// drops this for a program that is set-user-ID or has file capabilities.
			Pdeathsig: syscall.SIGKILL,
		},
	}
	if c.Extra != nil {
		p.cmd.ExtraFiles = []*os.File{c.Extra}
	}
	go p.keep(out)
	return p
}

// keep starts the child, waits for its end and reaps it.
//
// The kernel kills the child when the thread that forked it ends. A thread of the Go runtime
// may end at any time, if a goroutine that is locked to it ends. So this goroutine keeps its
// thread until the child has ended.
func (p *execProcess) keep(out io.WriteCloser) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.ended)
	defer func() { _ = out.Close() }() // which the reader awaits

	pipe, err := p.start()
	for _, f := range p.cmd.ExtraFiles {
		_ = f.Close()
	}
	if err != nil {
		p.state = Exit{Err: fmt.Errorf("start the child: %w", err)}
		return
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(out, pipe)
		_ = pipe.file.Close() // so that the child's writes fail
	}()
	p.mu.Lock()
	p.started = true
	if p.killed {
		p.killGroup()
	}
	p.mu.Unlock()
	awaitEnd(p.cmd.Process.Pid)
	p.mu.Lock()
	p.reapable = true
	// The child is not reaped yet, so its process group cannot be another's.
	p.killGroup()
	p.mu.Unlock()

	// Its error adds to the state only that pipes had to be closed.
	_ = p.cmd.Wait()
	pipe.drain(copied)
	p.state = exitOf(p.cmd.ProcessState)
}

func (p *execProcess) start() (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Close() }()
	p.cmd.Stdout = w
	if err := p.cmd.Start(); err != nil {
		_ = r.Close()
		return nil, err
	}
	return &output{file: r}, nil
}

// output is the pipe of a child's standard output.
type output struct {
	file *os.File
	read atomic.Int64
}

func (o *output) Read(b []byte) (int, error) {
	n, err := o.file.Read(b)
	o.read.Add(int64(n))
	return n, err
}

// drain waits until all that an ended child wrote was copied, however long a busy host takes for
// that. It does not wait for what the child left behind, which may hold the pipe open.
func (o *output) drain(copied <-chan struct{}) {
	for most := o.read.Load() + maxDrained; o.pending() > 0 && o.read.Load() <= most; {
		select {
		case <-copied:
		case <-time.After(drainStep):
		}
	}
	_ = o.file.Close()
	<-copied
}

// pending returns how many bytes can be read from the pipe now. It is zero once the pipe is closed.
func (o *output) pending() (n int) {
	if raw, err := o.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return n
}

// awaitEnd waits until a child has ended, and does not reap it.
func awaitEnd(pid int) {
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
}

func exitOf(s *os.ProcessState) Exit {
	if s == nil {
		return Exit{Status: -1}
	}
	e := Exit{CPU: s.UserTime() + s.SystemTime()}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signal() > 0 {
		e.Signal = ws.Signal()
	} else {
		e.Status = s.ExitCode()
	}
	return e
}

// killGroup kills the rest of the group. Caller holds mu.
func (p *execProcess) killGroup() {
	// Both fail only if no process is left. The child may have left its own group.
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
	_ = unix.Kill(p.cmd.Process.Pid, unix.SIGKILL)
}

func (p *execProcess) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	if p.started && !p.reapable {
		p.killGroup()
	}
}

func (p *execProcess) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		return 0
	}
	return p.cmd.Process.Pid
}

func (p *execProcess) Done() <-chan struct{} { return p.ended }
func (p *execProcess) Exit() Exit            { return p.state }
func (p *execProcess) Stderr() Stderr        { return p.tail.get() }
