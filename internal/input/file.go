// Package input reads files that people write. There may be anything else in their place.
package input

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
)

// MaxFile limits the size of a file, in bytes.
const MaxFile = 1 << 20

// ReadFile reads a regular file, or a link to one, of at most MaxFile bytes. It never waits for a
// named pipe or a device. Errors name the path.
func ReadFile(path string) ([]byte, error) {
	// Without O_NONBLOCK, opening a named pipe waits for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // Nothing was written.
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, fmt.Errorf("%s is a directory: name a file", path)
	case mode&os.ModeNamedPipe != 0:
		return nil, fmt.Errorf("%s is a named pipe: name a regular file", path)
	case !mode.IsRegular(): // A socket cannot be opened.
		return nil, fmt.Errorf("%s is a device: name a regular file", path)
	}
	// The size of files of /proc is 0, and a file may grow.
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > MaxFile:
		return nil, fmt.Errorf("%s has more than %d MiB: name a smaller file", path, MaxFile>>20)
	}
	return b, nil
}

// UnlessDone returns the result of f, or the error of ctx if that is done before. Then it leaves f
// behind, which may wait for a file whose server does not answer.
func UnlessDone[T any](ctx context.Context, f func() (T, error)) (T, error) {
	var value T
	var err error
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		value, err = f()
	}()
	select {
	case <-returned:
		return value, err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}
