package supervisor

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A reader of a child's output gets all that was written before the child ended, and
// then the end, whoever may still write.
func TestOutputPipe(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	r, w, err := newOutputPipe(ended)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read)
	go func() {
		b, err := io.ReadAll(r)
		done <- read{b, err}
	}()
	for _, part := range []string{"one ", "two ", "three"} {
		if _, err := w.WriteString(part); err != nil {
			t.Fatal(err)
		}
	}
	close(ended)
	if got := <-done; string(got.text) != "one two three" || got.err != nil {
		t.Errorf("the reader got %q, %v", got.text, got.err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// silent is a child that has ended and whose output nobody reads.
type silent struct {
	process
	closed chan struct{}
}

func (s silent) output() io.ReadCloser { return s }

func (s silent) Read([]byte) (int, error) { panic("nobody reads") }

func (s silent) Close() error {
	close(s.closed)
	return nil
}

// A reader that a busy machine does not let run for a time has its report all the same;
// one that never comes to an end is made to.
func TestFinishReading(t *testing.T) {
	for _, test := range []struct {
		name string
		late time.Duration
		want error
	}{
		{name: "late", late: readGrace - time.Millisecond},
		{name: "never", late: readGrace + time.Millisecond, want: os.ErrClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				child := silent{closed: make(chan struct{})}
				read := make(chan error, 1)
				go func() {
					select {
					case <-time.After(test.late):
						read <- nil
					case <-child.closed:
						read <- os.ErrClosed
					}
				}()
				if err := new(Supervisor).finishReading(child, read, true); !errors.Is(err, test.want) {
					t.Errorf("finishReading: %v, want %v", err, test.want)
				}
			})
		})
	}
}

// To close a pipe makes a read return that waits, whoever can still write.
func TestOutputPipeClosed(t *testing.T) {
	t.Parallel()
	r, w, err := newOutputPipe(make(chan struct{}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	done := make(chan error)
	go func() {
		_, err := r.Read(make([]byte, 1))
		done <- err
	}()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, os.ErrClosed) {
		t.Errorf("the read that waited returned %v", err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a later read returned %v", err)
	}
	if err := r.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("another close returned %v", err)
	}
}

// What a child left behind may write to its standard error without end, and holds up
// nobody.
func TestErrorPipeFlooded(t *testing.T) {
	t.Parallel()
	r, w, err := newErrorPipe()
	if err != nil {
		t.Fatal(err)
	}
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for err := error(nil); err == nil; _, err = w.Write(make([]byte, leastPipe)) {
		}
	}()
	r.end()
	var tl tail
	r.copyTo(&tl)
	_ = r.Close()
	<-flooded
	_ = w.Close()
}

// What fits into a pipe is there to be read, with an end; the rest is left to others.
func TestInputPipe(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"", "settings"} {
		r := inputPipe([]byte(want))
		if r == nil {
			t.Fatalf("no pipe for %q", want)
		}
		got, err := io.ReadAll(r)
		if string(got) != want || err != nil {
			t.Errorf("%q, %v came out of a pipe for %q", got, err, want)
		}
		_ = r.Close()
	}
	if r := inputPipe(make([]byte, 4<<20)); r != nil {
		_ = r.Close()
		t.Error("4 MiB are to fit into a pipe")
	}
}

// A child can be told more than fits into a pipe.
func TestLargeInput(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789abcdef", 1<<16)
	p, err := launch(Command{Path: "/bin/cat", Stdin: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(p.output())
	if string(got) != text || err != nil {
		t.Errorf("the child was told %d bytes of %d, %v", len(got), len(text), err)
	}
	<-p.done()
	if e := p.exit(); !e.ok() {
		t.Errorf("the child ended with %v", e)
	}
}

// The standard error is kept whichever way it is copied.
func TestTailReadFrom(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 5000) + "\npanic: why\n"
	var tl tail
	n, err := tl.ReadFrom(bytes.NewReader([]byte(text)))
	if int(n) != len(text) || err != nil {
		t.Errorf("read %d bytes of %d, %v", n, len(text), err)
	}
	if got := tl.get(); got.tail != text || got.fatal != "panic: why" {
		t.Errorf("kept %d bytes and the line %q", len(got.tail), got.fatal)
	}
}

// A child that fills its pipe is not held up until the next look of those that are far
// between: after a look at a full pipe the next one follows soon.
func TestOutputPipeFull(t *testing.T) {
	t.Parallel()
	r, w, err := newOutputPipe(make(chan struct{}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	size := 2 * r.full
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if r.pause() != lookSoon {
		t.Error("the next look at a pipe that was full is not soon")
	}
	if r.pause() != lookEvery {
		t.Error("one at a pipe that was empty is")
	}
}

// The end of a child is awaited, and leaves it to be reaped.
func TestAwaitEnd(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/bin/cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the end of the child was awaited, and it cannot be reaped: %v", err)
	}
}
