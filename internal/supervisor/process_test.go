package supervisor

import (
	"strings"
	"testing"
	"time"
)

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
