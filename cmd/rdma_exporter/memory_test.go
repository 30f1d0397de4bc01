package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
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

// TestReleasable makes sure that only what can be read again is given back, and that the
// cache is asked to let go of the program alone, and only if nearly all of it is resident.
func TestReleasable(t *testing.T) {
	const program = "/usr/bin/rdma_exporter"
	mapping := func(at, mode, file, resident, anonymous string) string {
		return at + " " + mode + " 00000000 fe:00 42 " + file + "\nSize: 800 kB\nRss: " + resident +
			" kB\nAnonymous: " + anonymous + " kB\nVmFlags: rd mr\n"
	}
	const library = "/usr/lib/libibverbs.so.1"
	for _, test := range []struct {
		name  string
		smaps string
		spans []addresses
		whole bool
	}{
		{"nothing", "", nil, false},
		{"all of the program", mapping("1000-2000", "r-xp", program, "800", "0"), []addresses{{0x1000, 0x2000}}, true},
		{"seven eighths of it", mapping("1000-2000", "r-xp", program, "700", "0"), []addresses{{0x1000, 0x2000}}, false},
		{"a library", mapping("1000-2000", "r-xp", library, "800", "0"), []addresses{{0x1000, 0x2000}}, false},
		{"both", mapping("1000-2000", "r--p", program, "4", "0") + mapping("3000-4000", "r--p", library, "800", "0"), []addresses{{0x1000, 0x2000}, {0x3000, 0x4000}}, false},
		{"to be written", mapping("1000-2000", "rw-p", program, "800", "0"), nil, false},
		{"with pages of this process", mapping("1000-2000", "r--p", program, "800", "4"), nil, false},
		{"memory after it", mapping("1000-2000", "r--p", program, "4", "4") +
			"3000-4000 rw-p 00000000 00:00 0\nSize: 4 kB\nRss: 4 kB\nAnonymous: 0 kB\n", nil, false},
		{"no addresses", mapping("1000", "r-xp", program, "800", "0") + mapping("2000-1000", "r-xp", program, "800", "0"), nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			spans, whole := releasable(test.smaps, program)
			if !slices.Equal(spans, test.spans) || whole != test.whole {
				t.Errorf("releasable = %x, %t; want %x, %t", spans, whole, test.spans, test.whole)
			}
		})
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
		if span(words[0]).from == uintptr(unsafe.Pointer(unsafe.SliceData(b))) {
			found = true
		}
		if found && words[0] == "Rss:" {
			return words[1]
		}
	}
	t.Fatal("the mapping is not among those of this process")
	return ""
}
