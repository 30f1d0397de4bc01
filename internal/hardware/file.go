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

// The bounds of what is read, so that an odd tree cannot fill the memory.
const (
	// maxFile limits the size of a file, in bytes. Longer ones are refused. sysfs ends at a
	// page. The longest in /proc/irq are lists of CPUs.
	maxFile = 64 << 10
	// maxText limits the characters of a line that are kept.
	maxText = 128
	// maxEntries limits the entries of a directory that are read.
	maxEntries = 4096
)

var (
	errNoFile  = errors.New("is not a regular file")
	errTooLong = errors.New("is too long")
)

// reader reads files one by one until its context ends.
type reader struct {
	ctx     context.Context // of one call of Read
	reading *atomic.Pointer[string]
	// stopped is the first file or request that the end of the context prevented.
	stopped string
}

// begin announces what is read now. It returns an error if the context has ended.
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

// end announces that reading has returned.
func (r *reader) end() {
	if r.reading != nil {
		r.reading.Store(nil)
	}
}

// open opens a file or directory. It never waits for the writer of a FIFO or for a device. Callers
// that get no error must call done.
func (r *reader) open(path string) (f *os.File, done func(), err error) {
	if err := r.begin(path); err != nil {
		return nil, nil, err
	}
	f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		r.end()
		return nil, nil, err
	}
	return f, func() {
		_ = f.Close() // nothing was written
		r.end()
	}, nil
}

// file returns the content of a file.
func (r *reader) file(path string) (string, error) {
	f, done, err := r.open(path)
	if err != nil {
		return "", err
	}
	defer done()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", &fs.PathError{Op: "read", Path: path, Err: errNoFile}
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxFile {
		return "", &fs.PathError{Op: "read", Path: path, Err: errTooLong}
	}
	return string(content), nil
}

// text returns the first line of a file, as clean does. It is empty if the file cannot be read.
func (r *reader) text(path string) string {
	content, _ := r.file(path)
	return clean(content)
}

// clean returns the first line of a text, without control characters and limited to maxText.
func clean(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return text.Truncate(strings.TrimSpace(text.Clean(s)), maxText)
}

func (r *reader) int(path string) (int, bool) {
	n, err := strconv.ParseInt(r.text(path), 10, 32)
	return int(n), err == nil
}

// list returns up to limit names in a directory, sorted.
func (r *reader) list(path string, limit int) ([]string, error) {
	dir, done, err := r.open(path)
	if err != nil {
		return nil, err
	}
	defer done()
	names, err := dir.Readdirnames(limit)
	if err != nil && !errors.Is(err, io.EOF) { // as for an empty one
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// numbers returns the names in a directory that are numbers, sorted.
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

// link returns the last element of the target of a symbolic link. It is empty if it is no link.
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

func (r *reader) resolve(path string) (string, error) {
	if err := r.begin(path); err != nil {
		return "", err
	}
	defer r.end()
	return filepath.EvalSymlinks(path)
}

// errno returns the symbol of the kernel's error. It is empty for other errors.
func errno(err error) string {
	var e syscall.Errno
	if !errors.As(err, &e) {
		return ""
	}
	return unix.ErrnoName(e)
}
