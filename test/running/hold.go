package running

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Held is a program, such as that of test/holder, that says "ready" once it does what it is
// there for, and ends when its standard input does.
type Held struct {
	// Said is the line in which it said so last.
	Said string

	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// Hold starts one, and waits until it is ready. It ends with the test, unless
// [Held.Release] is called before.
func Hold(t testing.TB, cmd *exec.Cmd) *Held {
	t.Helper()
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &Held{cmd: cmd, in: in, lines: bufio.NewScanner(out)}
	t.Cleanup(h.Release)
	h.Ready(t)
	return h
}

// Ready waits until the program says that it is ready, again.
func (h *Held) Ready(t testing.TB) {
	t.Helper()
	for h.lines.Scan() {
		if h.Said = h.lines.Text(); strings.HasPrefix(h.Said, "ready") {
			return
		}
	}
	t.Fatalf("%v ended before it was ready: %q, %v", h.cmd.Args, h.Said, h.lines.Err())
}

// Write implements io.Writer: the program reads it.
func (h *Held) Write(p []byte) (int, error) { return h.in.Write(p) }

// PID is the id of the process.
func (h *Held) PID() int { return h.cmd.Process.Pid }

// Release ends the program.
func (h *Held) Release() {
	_ = h.in.Close()
	_ = h.cmd.Wait()
}
