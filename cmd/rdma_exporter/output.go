package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// outputMode is the mode of a report's file, which another user usually reads.
const outputMode = 0o644

// checkOutput returns an error if the file of a flag cannot be written. An empty path means
// standard output.
func checkOutput(flag, path string) error {
	if path == "" {
		return nil
	}
	name := flag + " " + path
	// A link such as /dev/stdout would be replaced for all programs.
	if target, err := os.Readlink(path); err == nil && (strings.HasPrefix(target, "/proc/") || strings.HasPrefix(target, "/dev/")) {
		return fmt.Errorf("%s: it is a link to %s, and would be replaced by a file: redirect standard output", name, target)
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("%s: %w", flag, err)
	case info.IsDir():
		return fmt.Errorf("%s: it is a directory: name a file in it", name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: it is not a regular file, and would be replaced by one: redirect standard output", name)
	}
	folder := filepath.Dir(path)
	if err := unix.Faccessat(unix.AT_FDCWD, folder, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("%s: cannot write a file in %s: %w", name, folder, err)
	}
	return nil
}

func write(flag, path string, text []byte, std stdio) error {
	if path == "" {
		return writeOut(text, std)
	}
	if err := replace(path, text); err != nil {
		return fmt.Errorf("%s %s: %w; the previous file is unchanged", flag, path, err)
	}
	return nil
}

func writeOut(text []byte, std stdio) error {
	if _, err := std.out.Write(text); err != nil {
		return fmt.Errorf("write the report to standard output: %w", err)
	}
	return nil
}

// replace replaces a file or a symbolic link in one step. A reader sees either the old or the
// new text, even after a power cut. After an error the old file is unchanged.
func replace(path string, text []byte) error {
	// The textfile collector ignores files of such a name.
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	return replaceBy(f, path, text)
}

// replaceBy is replace by way of a new file in the same directory, which it closes.
func replaceBy(f *os.File, path string, text []byte) (err error) {
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
	return os.Rename(f.Name(), path)
}
