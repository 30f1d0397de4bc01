// Command rdma_exporter probes the RDMA devices of a host, holds them to the
// contracts of the manual, and serves what it finds as Prometheus metrics.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/prometheus/common/version"

	"rdma_exporter/internal/text"
)

func main() {
	// The child's probes measure memory, and the main thread is the only one whose
	// allocator takes no address space of its own in advance.
	runtime.LockOSThread()
	version.Version = versionOf(version.Version)
	ctx, stop := context.Background(), func() {}
	// A child that is told to end may end at once: the kernel takes back what it holds.
	if !isChild(os.Args[1:]) {
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		// A second signal ends the process whatever it waits for.
		context.AfterFunc(ctx, stop)
	}
	status := run(ctx, os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(status)
}

// versionOf returns the version that the linker stamped, or what Go made of the
// repository, if a plain go build stamped none.
func versionOf(stamped string) string {
	if stamped != "" {
		return stamped
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Version
}

// stdio are the standard streams.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// Exit statuses. The commands audit and ceiling say themselves what 1 and 2 are for.
const (
	exitOK = iota
	// exitFailed: what was asked for could not be done.
	exitFailed
	// exitUsage: the command line or a file that it names is wrong.
	exitUsage
)

// complain says in one line why nothing is done.
func complain(std stdio, err error) {
	var line strings.Builder
	for part := range strings.Lines(err.Error()) {
		part = strings.TrimSpace(part)
		switch soFar := line.String(); {
		case soFar == "":
		case strings.HasSuffix(soFar, ":"):
			line.WriteString(" ")
		default:
			line.WriteString("; ")
		}
		line.WriteString(part)
	}
	fmt.Fprintf(std.err, "%s: error: %s\n", programName, text.Clean(line.String()))
}

// unlessDone returns what f returns, or the error of ctx if that is done before: f may
// have to wait for a file whose server does not answer, and is left alone with that then.
func unlessDone[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	returned := make(chan result, 1)
	go func() {
		v, err := f()
		returned <- result{v, err}
	}()
	select {
	case r := <-returned:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// run is the program without the process around it: it parses the arguments and
// runs the command that they name until it ends or ctx is cancelled.
func run(ctx context.Context, args []string, std stdio) (status int) {
	o, done, status := parse(args, std)
	if done {
		return status
	}
	switch o.command {
	case commandServe:
		runtime.UnlockOSThread() // serving needs no thread of its own
		return runServe(ctx, o, std)
	case commandAudit:
		runtime.UnlockOSThread()
		return runAudit(ctx, o, std)
	case commandHealthcheck:
		runtime.UnlockOSThread()
		return o.health.run(ctx, std)
	case commandCeiling:
		runtime.UnlockOSThread()
		return runCeiling(ctx, o, std)
	default:
		return runChild(ctx, o, std)
	}
}
