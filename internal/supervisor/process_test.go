package supervisor

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A child has timers that may be late, and the thread that starts it has its own as before.
func TestStartSlack(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slack := func() int {
		t.Helper()
		ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return ns
	}
	before := slack()
	for _, tt := range []struct {
		own  int
		want string
	}{
		{50_000, "1000000\n"},
		{5_000_000, "5000000\n"},
	} {
		if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(tt.own), 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		cmd := exec.Command("/bin/cat", "/proc/self/timerslack_ns")
		cmd.Stdout = &out
		if err := startSlack(cmd); err != nil {
			t.Fatal(err)
		}
		after := slack()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if out.String() != tt.want || after != tt.own {
			t.Errorf("from a thread with %d ns, which has %d ns after it, a child with %q; want %q", tt.own, after, out.String(), tt.want)
		}
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(before), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
}

// What a child wrote to its standard error is kept, however late it is read: whoever
// reads it may be held up when the child has ended.
func TestStderrReadLate(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"child alone": "",
		// A process in a session of its own keeps the pipe open.
		"pipe held": `setsid sh -c ': >"$0/$$"; exec sleep 1000' "$0" </dev/null >/dev/null & until [ "$(ls "$0")" ]; do :; done; `,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pids := t.TempDir()
			t.Cleanup(func() { killAll(pidsIn(t, pids)) })
			text := strings.Repeat("x", 3000)
			p, err := launch(Command{Path: "/bin/sh", Args: []string{"-c", before + `echo "$1" >&2; echo why >&2`, pids, text}})
			if err != nil {
				t.Fatal(err)
			}
			child := p.(*execProcess)
			// Nothing more than the first piece is taken until this is given back.
			child.tail.mu.Lock()
			awaitEnd(child.pid())
			time.Sleep(2 * pipeGrace)
			child.tail.mu.Unlock()
			<-child.done()
			_ = child.output().Close()
			if got := child.stderr().tail; got != text+"\nwhy\n" {
				t.Errorf("%d bytes are kept of what the child wrote to its standard error: %q", len(got), got)
			}
		})
	}
}
