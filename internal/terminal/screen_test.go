package terminal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/terminal"
	"rdma_exporter/test/running"
)

func newTerminal(t *testing.T, rows, columns int) *os.File {
	t.Helper()
	master := running.Must(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = master.Close() })
	running.Check(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n := running.Must(unix.IoctlGetUint32(int(master.Fd()), unix.TIOCGPTN))(t)
	terminal := running.Must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = terminal.Close() })
	size := &unix.Winsize{Row: uint16(rows), Col: uint16(columns)}
	running.Check(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, size))
	return terminal
}

func TestDetect(t *testing.T) {
	t.Parallel()
	tty, file := newTerminal(t, 24, 132), filepath.Join(t.TempDir(), "file")
	regular := running.Must(os.Create(file))(t)
	t.Cleanup(func() { _ = regular.Close() })
	null := running.Must(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(t)
	t.Cleanup(func() { _ = null.Close() })
	type env map[string]string
	for _, c := range []struct {
		name string
		file *os.File
		env  env
		want terminal.Screen
	}{
		{"terminal", tty, env{"TERM": "xterm"}, terminal.Screen{Terminal: true, Width: 132, Colour: true}},
		{"UTF-8", tty, env{"TERM": "xterm", "LANG": "en_GB.UTF-8"}, terminal.Screen{Terminal: true, Width: 132, Colour: true, Unicode: true}},
		{"utf8", tty, env{"TERM": "xterm", "LC_CTYPE": "C.utf8"}, terminal.Screen{Terminal: true, Width: 132, Colour: true, Unicode: true}},
		{"LC_ALL wins", tty, env{"TERM": "xterm", "LC_ALL": "C", "LANG": "en_GB.UTF-8"}, terminal.Screen{Terminal: true, Width: 132, Colour: true}},
		{"NO_COLOR", tty, env{"TERM": "xterm", "NO_COLOR": "1"}, terminal.Screen{Terminal: true, Width: 132}},
		{"NO_COLOR of any value", tty, env{"TERM": "xterm", "NO_COLOR": "0"}, terminal.Screen{Terminal: true, Width: 132}},
		{"NO_COLOR empty", tty, env{"TERM": "xterm", "NO_COLOR": ""}, terminal.Screen{Terminal: true, Width: 132, Colour: true}},
		{"dumb", tty, env{"TERM": "dumb"}, terminal.Screen{Terminal: true, Width: 132}},
		{"no TERM", tty, nil, terminal.Screen{Terminal: true, Width: 132}},
		{"COLUMNS", tty, env{"TERM": "xterm", "COLUMNS": "61"}, terminal.Screen{Terminal: true, Width: 61, Colour: true}},
		{"COLUMNS no number", tty, env{"TERM": "xterm", "COLUMNS": "many"}, terminal.Screen{Terminal: true, Width: 132, Colour: true}},
		{"COLUMNS zero", tty, env{"TERM": "xterm", "COLUMNS": "0"}, terminal.Screen{Terminal: true, Width: 132, Colour: true}},
		{"size unknown", newTerminal(t, 0, 0), env{"TERM": "xterm"}, terminal.Screen{Terminal: true, Width: 80, Colour: true}},
		{"file", regular, env{"TERM": "xterm", "LANG": "C.UTF-8"}, terminal.Screen{Width: 80, Unicode: true}},
		{"file with COLUMNS", regular, env{"COLUMNS": "61"}, terminal.Screen{Width: 61}},
		{"device", null, env{"TERM": "xterm"}, terminal.Screen{Width: 80}},
		{"nothing", nil, env{"TERM": "xterm"}, terminal.Screen{Width: 80}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := terminal.Detect(c.file, func(name string) string { return c.env[name] }); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
