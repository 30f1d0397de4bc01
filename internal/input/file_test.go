package input_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/input"
	"rdma_exporter/test/running"
)

func TestReadFile(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "some": "a: 1\n", "largest": strings.Repeat("#", input.MaxFile)} {
		got, err := input.ReadFile(running.File(t, "it.yaml", text))
		if err != nil || string(got) != text {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if b, err := input.ReadFile("/proc/self/status"); err != nil || len(b) == 0 {
		t.Errorf("a file that does not know its size: %d bytes, %v", len(b), err)
	}
}

func TestReadFileRefuses(t *testing.T) {
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	running.Check(t, unix.Mkfifo(fifo, 0o600))
	running.Check(t, os.Symlink(fifo, link))
	large := running.File(t, "large", strings.Repeat("#", input.MaxFile+1))
	for path, want := range map[string]string{
		fifo: "is a named pipe", link: "is a named pipe", dir: "is a directory",
		"/dev/zero": "is a device", "/dev/null": "is a device", large: "has more than 1 MiB",
	} {
		b, err := input.ReadFile(path)
		if err == nil || b != nil || !strings.Contains(err.Error(), path+" "+want) {
			t.Errorf("%s: %d bytes, %v", path, len(b), err)
		}
	}
	if _, err := input.ReadFile(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is absent: %v", err)
	}
}
