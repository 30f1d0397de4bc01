package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/saved"
)

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

// writeResult writes the text of a result, or the result as JSON. It has plain fields.
func writeResult(text string, result any, asJSON bool, std stdio) error {
	b := []byte(text)
	if asJSON {
		b, _ = json.MarshalIndent(result, "", "  ")
		b = append(b, '\n')
	}
	return writeOut(b, std)
}

func writeOut(text []byte, std stdio) error {
	if _, err := std.out.Write(text); err != nil {
		return fmt.Errorf("write the report to standard output: %w", err)
	}
	return nil
}

// replace is [saved.Replace] by a file whose name the textfile collector ignores.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	return saved.Replace(f, path, text)
}
