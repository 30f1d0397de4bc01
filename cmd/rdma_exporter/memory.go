package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// firstTidy is how long after its start the exporter first gives back memory that it
	// needed to start. It does so again after twice that time, and so on until
	// tidyInterval: the more devices there are, the longer the first runs take.
	firstTidy    = 10 * time.Second
	tidyInterval = 10 * time.Minute
)

// keepSmall gives back what the process does not need, now and then, until ctx is done.
// Most of what it has resident is pages of its program's file, which were read to start,
// or once for a page of the status, and stay until the kernel is short of memory.
func keepSmall(ctx context.Context) {
	pause := firstTidy
	wait := time.NewTimer(pause)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-ctx.Done():
			return
		}
		debug.FreeOSMemory()
		_ = releaseFiles() // which only costs memory
		pause = min(2*pause, tidyInterval)
		wait.Reset(pause)
	}
}

// releaseFiles gives back the pages of files that are mapped and that nobody can write to:
// those that are needed are read again, mostly from the kernel's cache. The cache holds a
// file that was just written in large pieces, and from Linux 6.18 on a piece is resident
// whole for one byte of it that is read. So where nearly all of the program is resident, the
// cache lets go of it too, and what is needed comes back from the disk in small pieces.
func releaseFiles() error {
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("read the mappings of this process: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the file of this program: %w", err)
	}
	spans, whole := releasable(string(text), program)
	file := -1
	if whole {
		f, err := os.Open("/proc/self/exe")
		if err != nil {
			return fmt.Errorf("open the file of this program: %w", err)
		}
		defer func() { _ = f.Close() }() // nothing was written
		file = int(f.Fd())
	}
	// No memory of Go's is there, which unix.Madvise would take. And nothing but these
	// calls may run here: what runs is mapped again, and the cache keeps what is mapped.
	var refused unix.Errno
	for i := range spans {
		if _, _, errno := unix.RawSyscall(unix.SYS_MADVISE, spans[i].from, spans[i].to-spans[i].from, unix.MADV_DONTNEED); errno != 0 {
			refused = errno
		}
	}
	if file >= 0 { // what the kernel says to it changes nothing
		_, _, _ = unix.RawSyscall6(unix.SYS_FADVISE64, uintptr(file), 0, 0, unix.FADV_DONTNEED, 0, 0)
	}
	if refused != 0 {
		return fmt.Errorf("give back the pages of a file: %w", refused)
	}
	return nil
}

// addresses are those of a mapping: from the first to the one after the last.
type addresses struct{ from, to uintptr }

// releasable returns the mappings whose pages can be given back, of the text of
// /proc/self/smaps: those of files that nobody can write to, unless this process has pages
// of its own there, as relocation makes them. whole is whether one of them is of the
// program and resident but for less than an eighth.
func releasable(smaps, program string) (spans []addresses, whole bool) {
	var at addresses // of the mapping whose lines are read; empty for one that is to stay
	var size, resident uint64
	var file string
	for line := range strings.Lines(smaps) {
		words := strings.Fields(line)
		switch {
		case len(words) == 6 && len(words[1]) == 4 && words[1][1] == '-' && words[5][0] == '/':
			at, file = span(words[0]), words[5]
		case len(words) >= 5: // another mapping
			at = addresses{}
		case len(words) != 3 || at.from >= at.to:
		case words[0] == "Size:":
			size, _ = strconv.ParseUint(words[1], 10, 64)
		case words[0] == "Rss:":
			resident, _ = strconv.ParseUint(words[1], 10, 64)
		case words[0] == "Anonymous:" && words[1] == "0":
			spans = append(spans, at)
			whole = whole || file == program && resident > size-size/8
		}
	}
	return spans, whole
}

// span parses the addresses between which a mapping is; they are empty if they make no
// sense.
func span(text string) addresses {
	a, b, _ := strings.Cut(text, "-")
	from, err := strconv.ParseUint(a, 16, 64)
	if err != nil {
		return addresses{}
	}
	to, err := strconv.ParseUint(b, 16, 64)
	if err != nil || to < from {
		return addresses{}
	}
	return addresses{from: uintptr(from), to: uintptr(to)}
}
