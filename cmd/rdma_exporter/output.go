package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// outputMode is the mode of a report's file. Whoever collects it is mostly another
// user, and nothing in it is a secret: it is what /metrics would tell anybody.
const outputMode = 0o644

// checkOutput returns an error if it is clear beforehand that a report cannot be
// written to a file of this name; empty for standard output.
func checkOutput(path string) error {
	if path == "" {
		return nil
	}
	// A link such as /dev/stdout leads to wherever standard output goes, and would be
	// replaced for every program there is.
	if target, err := os.Readlink(path); err == nil && (strings.HasPrefix(target, "/proc/") || strings.HasPrefix(target, "/dev/")) {
		return fmt.Errorf("--output %s: it is a link to %s, and would be replaced by a file: drop --output and redirect standard output", path, target)
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("--output: %w", err)
	case info.IsDir():
		return fmt.Errorf("--output %s: it is a directory: name a file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("--output %s: it is not a regular file, and would be replaced by one: drop --output and redirect standard output", path)
	}
	folder := filepath.Dir(path)
	if err := unix.Faccessat(unix.AT_FDCWD, folder, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("--output %s: cannot write a file in %s: %w", path, folder, err)
	}
	return nil
}

// write writes a report to a file or, without a name for one, to standard output. It
// does not wait longer than ctx for the file system, or for somebody to read that.
func write(ctx context.Context, path string, text []byte, std stdio) error {
	// What does not return lasts until the process ends, which it is about to.
	_, err := unlessDone(ctx, func() (struct{}, error) {
		if path != "" {
			return struct{}{}, replace(path, text)
		}
		_, err := std.out.Write(text)
		return struct{}{}, err
	})
	why := ""
	switch {
	case errors.Is(err, context.Canceled):
		why = "interrupted"
	case errors.Is(err, context.DeadlineExceeded):
		why = "out of time"
	}
	switch {
	case err == nil:
		return nil
	case why != "" && path != "":
		return fmt.Errorf("--output %s: %s before it was written: it is the previous file or, if it is written yet, the whole report", path, why)
	case why != "":
		return fmt.Errorf("%s while nobody read standard output: the report is incomplete", why)
	case path != "":
		return fmt.Errorf("--output %s: %w; the previous file is unchanged", path, err)
	default:
		return fmt.Errorf("write the report to standard output: %w", err)
	}
}

// replace replaces a file, or a symbolic link to one, by another one with this text,
// at once and for good: whoever reads it at any moment, or after a power cut, has
// either the old text or the new. After an error the old file is as it was, and
// nothing else is left.
func replace(path string, text []byte) (err error) {
	// Nobody takes a file whose name begins with a dot and has a number at its end for
	// the report.
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // It may be closed already.
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Chmod(outputMode); err != nil { // whatever the umask is
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return nil
}
