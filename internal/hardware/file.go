package hardware

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/text"
)

// The bounds of what is read, so that an odd tree fills no memory.
const (
	// maxFile is how many bytes of a file are read. What is longer is refused. sysfs ends
	// at a page; the longest in /proc/irq are lists of processors.
	maxFile = 64 << 10
	// maxText is how many characters of a line are kept.
	maxText = 128
	// maxEntries is how many entries of a directory are looked at, if nothing else says.
	maxEntries = 4096
)

// errNoFile is what no regular file is.
var errNoFile = errors.New("is not a regular file")

// errTooLong is a file beyond maxFile.
var errTooLong = errors.New("is too long")

// reader reads one file after the other until its context ends.
type reader struct {
	ctx     context.Context // of one call of Read
	reading *atomic.Pointer[string]
	buffer  [4096]byte
	// last is the directory of the file before. Once a second one of it is read, the
	// directory is open as fd: to find each file from the root takes half of the time
	// that reading it does.
	last string
	open bool
	fd   int
	// stopped is what was to be read when the time was up.
	stopped string
}

// close closes the directory that is open.
func (r *reader) close() {
	if r.open {
		_ = unix.Close(r.fd) // nothing was written
		r.open = false
	}
}

// from returns the directory from which a file is opened, and its path there.
func (r *reader) from(path string) (fd int, name string) {
	dir, name := filepath.Split(path)
	switch {
	case dir != r.last:
		r.close()
		r.last = dir
		return unix.AT_FDCWD, path
	case !r.open:
		fd, err := ignoringEINTR(func() (int, error) {
			return unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		})
		if err != nil {
			return unix.AT_FDCWD, path
		}
		r.fd, r.open = fd, true
	}
	return r.fd, name
}

// begin says what is read now. It returns an error once the time is up.
func (r *reader) begin(what string) error {
	if err := r.ctx.Err(); err != nil {
		r.stopped = cmp.Or(r.stopped, what)
		return err
	}
	if r.reading != nil {
		r.reading.Store(&what)
	}
	return nil
}

// end says that it has returned.
func (r *reader) end() {
	if r.reading != nil {
		r.reading.Store(nil)
	}
}

// file returns what a file has.
func (r *reader) file(path string) (string, error) {
	if err := r.begin(path); err != nil {
		return "", err
	}
	defer r.end()
	dir, name := r.from(path)
	// Nothing that is no file is waited for: neither a writer of a FIFO nor a device.
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return "", &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", &fs.PathError{Op: "read", Path: path, Err: errNoFile}
	}
	var content []byte
	buffer := r.buffer[:]
	for {
		n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, buffer) })
		if err != nil {
			return "", &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if len(content)+n > maxFile {
			return "", &fs.PathError{Op: "read", Path: path, Err: errTooLong}
		}
		content = append(content, buffer[:n]...)
		// Files of the kernel fill the buffer as long as there is more.
		if n < len(buffer) {
			return string(content), nil
		}
	}
}

// ignoringEINTR repeats what a signal interrupted.
func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// text returns the one line of a file, clean and no longer than maxText.
func (r *reader) text(path string) (string, error) {
	content, err := r.file(path)
	if err != nil {
		return "", err
	}
	return clean(content), nil
}

// clean returns the first line of a text, clean and no longer than maxText.
func clean(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return text.Truncate(strings.TrimSpace(text.Clean(s)), maxText)
}

// int returns the number in a file.
func (r *reader) int(path string) (int, bool) {
	content, err := r.file(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(content), 10, 32)
	return int(n), err == nil
}

// list returns the names in a directory, in their order, and no more than most.
func (r *reader) list(path string, most int) ([]string, error) {
	if err := r.begin(path); err != nil {
		return nil, err
	}
	defer r.end()
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // nothing was written
	names, err := dir.Readdirnames(most)
	if err != nil && !errors.Is(err, io.EOF) { // which is what an empty one has
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// numbers returns the names in a directory that are numbers, in the order of these.
func (r *reader) numbers(path string) ([]int, error) {
	names, err := r.list(path, maxEntries)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, name := range names {
		if n, err := strconv.ParseUint(name, 10, 31); err == nil && strconv.FormatUint(n, 10) == name {
			all = append(all, int(n))
		}
	}
	slices.Sort(all)
	return all, nil
}

// link returns the last element of what a symbolic link leads to, clean; empty if it is
// none.
func (r *reader) link(path string) string {
	if r.begin(path) != nil {
		return ""
	}
	defer r.end()
	target, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	return clean(filepath.Base(target))
}

// resolve returns a path without symbolic links.
func (r *reader) resolve(path string) (string, error) {
	if err := r.begin(path); err != nil {
		return "", err
	}
	defer r.end()
	return filepath.EvalSymlinks(path)
}

// errno returns the symbol of an error of the kernel; empty if it is none.
func errno(err error) string {
	var e syscall.Errno
	if !errors.As(err, &e) {
		return ""
	}
	return unix.ErrnoName(e)
}
