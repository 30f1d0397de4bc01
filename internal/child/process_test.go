package child

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/test/running"
)

func TestMain(m *testing.M) { os.Exit(running.WithoutLeaks(m)) }

// started starts a program and returns it, and all that it writes once it has ended.
func started(t *testing.T, c Command) (p Process, output func() string) {
	t.Helper()
	r, w := io.Pipe()
	p = Start(c, w)
	read := make(chan string, 1)
	go func() {
		b, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		read <- string(b)
	}()
	return p, func() string {
		<-p.Done()
		return <-read
	}
}

// TestLargeInput verifies that a child can be told more than fits into a pipe.
func TestLargeInput(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789abcdef", 1<<16)
	p, output := started(t, Command{Path: "/bin/cat", Stdin: []byte(text)})
	if got := output(); got != text || !p.Exit().Ok() {
		t.Errorf("the child was told %d bytes of %d, and ended with %v", len(got), len(text), p.Exit())
	}
}

// TestExtra verifies that a child reads a file of the caller, and that Start closes it.
func TestExtra(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	running.Check(t, err)
	p, output := started(t, Command{Path: "/bin/sh", Args: []string{"-c", fmt.Sprintf("cat <&%d", ExtraFD)}, Extra: r})
	_, err = w.WriteString("asked")
	running.Check(t, err)
	running.Check(t, w.Close())
	if got := output(); got != "asked" || !p.Exit().Ok() || r.Close() == nil {
		t.Errorf("read %q, ended with %v", got, p.Exit())
	}
}

// stalledWriter takes what it is given only once it is released.
type stalledWriter struct {
	released chan struct{}
	written  atomic.Int64
}

func (w *stalledWriter) Write(b []byte) (int, error) {
	<-w.released
	w.written.Add(int64(len(b)))
	return len(b), nil
}

func (w *stalledWriter) Close() error { return nil }

// TestSlowReader verifies that all that a child wrote is read, also if that takes long after its end.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	const size = 60_000 // It fits into a pipe, and not into one read.
	w := &stalledWriter{released: make(chan struct{})}
	time.AfterFunc(stderrGrace+time.Second, func() { close(w.released) })
	p := Start(Command{Path: "/bin/sh", Args: []string{"-c", "head -c 60000 /dev/zero"}}, w)
	<-p.Done()
	if n := w.written.Load(); n != size || !p.Exit().Ok() {
		t.Errorf("read %d bytes of %d, ended with %v", n, size, p.Exit())
	}
}

// TestPipesHeld verifies that a process that the child left behind, outside its process
// group, ends neither what is read nor who reads it.
func TestPipesHeld(t *testing.T) {
	t.Parallel()
	for name, holder := range map[string]string{
		"silent": "exec sleep 1000",
		"floods": "while echo y; do echo n >&2; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pids := t.TempDir()
			t.Cleanup(func() {
				for _, f := range running.Must(os.ReadDir(pids))(t) {
					running.Check(t, unix.Kill(running.Must(strconv.Atoi(f.Name()))(t), unix.SIGKILL))
				}
			})
			script := `setsid sh -c ': >"$0/$$"; ` + holder + `' "$0" & until [ "$(ls "$0")" ]; do :; done; echo report; echo why >&2`
			p, output := started(t, Command{Path: "/bin/sh", Args: []string{"-c", script, pids}})
			if got := output(); !strings.Contains(got, "report\n") || !p.Exit().Ok() {
				t.Errorf("read %.99q, ended with %v", got, p.Exit())
			}
			if got := p.Stderr().Tail; name == "silent" && got != "why\n" {
				t.Errorf("read %q of its standard error", got)
			}
		})
	}
}
