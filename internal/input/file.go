// Package input reads files that people write, with the care that others may have put
// something else in their place.
package input

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// MaxFile is the most bytes of a file: far more than anybody writes by hand.
const MaxFile = 1 << 20

// ReadFile reads a whole file, which must be a regular one of no more than MaxFile bytes,
// or a link to one. Of what else there can be at a path nothing is read, and nothing is
// waited for: a named pipe or a device has no end that one could rely on. Errors name the
// path.
func ReadFile(path string) ([]byte, error) {
	// To open a named pipe would wait for somebody who writes.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // Nothing was written.
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory: name a file", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is a %s: name a regular file", path, kind(info.Mode()))
	}
	// Files of /proc say that they are empty, and a file may grow meanwhile.
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > MaxFile:
		return nil, fmt.Errorf("%s has more than %d MiB: name a smaller file", path, MaxFile>>20)
	}
	return b, nil
}

// kind names what is no regular file. To open a socket is refused.
func kind(m os.FileMode) string {
	if m&os.ModeNamedPipe != 0 {
		return "named pipe"
	}
	return "device"
}
