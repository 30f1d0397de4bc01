package supervisor

import (
	"io"
	"strings"
	"testing"
)

// started starts a program and returns it, and all that it writes once it has ended.
func started(t *testing.T, c Command) (p process, output func() string) {
	t.Helper()
	r, w := io.Pipe()
	p = launch(c, w)
	read := make(chan string, 1)
	go func() {
		b, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		read <- string(b)
	}()
	return p, func() string {
		<-p.done()
		return <-read
	}
}

// TestLargeInput verifies that a child can be told more than fits into a pipe.
func TestLargeInput(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789abcdef", 1<<16)
	p, output := started(t, Command{Path: "/bin/cat", Stdin: []byte(text)})
	if got := output(); got != text || !p.exit().ok() {
		t.Errorf("the child was told %d bytes of %d, and ended with %v", len(got), len(text), p.exit())
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
			t.Cleanup(func() { killAll(pidsIn(t, pids)) })
			script := `setsid sh -c ': >"$0/$$"; ` + holder + `' "$0" & until [ "$(ls "$0")" ]; do :; done; echo report; echo why >&2`
			p, output := started(t, Command{Path: "/bin/sh", Args: []string{"-c", script, pids}})
			if got := output(); !strings.Contains(got, "report\n") || !p.exit().ok() {
				t.Errorf("read %.99q, ended with %v", got, p.exit())
			}
			if got := p.stderr().tail; name == "silent" && got != "why\n" {
				t.Errorf("read %q of its standard error", got)
			}
		})
	}
}
