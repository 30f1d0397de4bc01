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
// those that are needed are read again, mostly from the kernel's cache. Of a mapping of
// which this process has pages of its own, as relocation makes them, it takes nothing.
func releaseFiles() error {
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("read the mappings of this process: %w", err)
	}
	var from, to uintptr // of the mapping whose lines are read; 0 for one that is to stay
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 6 && len(words[1]) == 4 && words[1][1] == '-' && words[5][0] == '/':
			from, to = span(words[0])
		case len(words) >= 5: // another mapping
			from, to = 0, 0
		case len(words) == 3 && words[0] == "Anonymous:" && words[1] == "0" && from < to:
			// No memory of Go's is there, which unix.Madvise would take.
			if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); errno != 0 {
				return fmt.Errorf("give back the pages of a file: %w", errno)
			}
		}
	}
	return nil
}

// span parses the addresses between which a mapping is; it is empty if they make no
// sense.
func span(text string) (from, to uintptr) {
	a, b, _ := strings.Cut(text, "-")
	start, err := strconv.ParseUint(a, 16, 64)
	if err != nil {
		return 0, 0
	}
	end, err := strconv.ParseUint(b, 16, 64)
	if err != nil || end < start {
		return 0, 0
	}
	return uintptr(start), uintptr(end)
}
