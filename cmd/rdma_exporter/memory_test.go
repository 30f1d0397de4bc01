package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestReleaseFiles makes sure that pages of a file that were only read are given back, and
// read anew when they are needed, and that what the process has changed of one stays.
func TestReleaseFiles(t *testing.T) {
	const size = 1 << 20
	dir := t.TempDir()
	mapped := func(name string, change bool) []byte {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, bytes.Repeat([]byte("file"), size/4), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }() // nothing was written
		b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(b) })
		if change {
			copy(b, "mine")
		}
		if err := unix.Mprotect(b, unix.PROT_READ); err != nil {
			t.Fatal(err)
		}
		if bytes.Count(b, []byte("file")) < size/4-1 {
			t.Fatal("the mapping is not of the file")
		}
		return b
	}
	read, changed := mapped("read", false), mapped("changed", true)
	if err := releaseFiles(); err != nil {
		t.Fatal(err)
	}
	if n := resident(t, read); n != "0" {
		t.Errorf("%s kB of a file that was read are resident", n)
	}
	if string(changed[:8]) != "minefile" || string(read[:8]) != "filefile" {
		t.Errorf("what was changed begins with %q, and what was read with %q", changed[:8], read[:8])
	}
}

// resident returns how much of a mapping is, in kB.
func resident(t *testing.T, b []byte) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if from, _ := span(words[0]); from == uintptr(unsafe.Pointer(unsafe.SliceData(b))) {
			found = true
		}
		if found && words[0] == "Rss:" {
			return words[1]
		}
	}
	t.Fatal("the mapping is not among those of this process")
	return ""
}
