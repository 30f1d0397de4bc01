package running

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Held is a program, such as test/holder, that writes "ready" once it does its work, and ends
// when its standard input does.
type Held struct {
	// Said is the line that begins with "ready".
	Said string

	cmd *exec.Cmd
	in  io.Closer
}

// Hold starts one, and waits until it is ready. It ends with the test, unless
// [Held.Release] is called before.
func Hold(t testing.TB, cmd *exec.Cmd) *Held {
	t.Helper()
	cmd.Stderr = os.Stderr
	in := Must(cmd.StdinPipe())(t)
	out := Must(cmd.StdoutPipe())(t)
	Check(t, cmd.Start())
	h := &Held{cmd: cmd, in: in}
	t.Cleanup(h.Release)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if h.Said = lines.Text(); strings.HasPrefix(h.Said, "ready") {
			return h
		}
	}
	t.Fatalf("%v ended before it was ready: %q, %v", cmd.Args, h.Said, lines.Err())
	return nil
}

// PID is the id of the process.
func (h *Held) PID() int { return h.cmd.Process.Pid }

// Release ends the program.
func (h *Held) Release() {
	_ = h.in.Close()
	_ = h.cmd.Wait()
}
