package answer

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"rdma_exporter/internal/child"
)

// process is a Child that is a process of the operating system.
type process struct {
	child.Process
	in  *os.File
	out *io.PipeReader
}

// StartProcess starts a process, whose input begins with a line: that of the command.
func StartProcess(c child.Command) (Child, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	settings := slices.Concat(c.Stdin, []byte{'\n'})
	c.Stdin, c.StdinFile = nil, r
	out, in := io.Pipe()
	p := process{child.Start(c, in), w, out}
	_, err = p.Write(settings) // It blocks only if there are more than a pipe holds.
	if err != nil {
		p.Kill()
	}
	go func() { // It ends with the process, for which the Responder waits.
		<-p.Done()
		_, _ = r.Close(), w.Close()
	}()
	return p, err
}

// Write implements Child. It does not block on a process that reads nothing.
func (p process) Write(b []byte) (int, error) {
	if err := p.in.SetWriteDeadline(time.Now().Add(callTime)); err != nil {
		return 0, fmt.Errorf("write to a child: %w", err)
	}
	return p.in.Write(b)
}

// CloseInput implements Child.
func (p process) CloseInput() { _ = p.in.Close() }

// Output implements Child.
func (p process) Output() io.Reader { return p.out }
