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
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/text"
)

func main() {
	// The child's probes measure memory. Other threads reserve address space for their allocator.
	runtime.LockOSThread()
	version.Version = versionOf(version.Version)
	ctx, stop := context.Background(), func() {}
	// A signal ends a child at once: the kernel takes back what it holds.
	if !isChild(os.Args[1:]) {
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		// A second signal ends the process, whatever it waits for.
		context.AfterFunc(ctx, stop)
	}
	status := run(ctx, os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(status)
}

// versionOf returns the stamped version, or after a plain go build the one from the repository.
func versionOf(stamped string) string {
	if info, ok := debug.ReadBuildInfo(); ok && stamped == "" {
		return info.Main.Version
	}
	return stamped
}

type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// Exit statuses. The commands audit and ceiling have their own meaning of 1 and 2.
const (
	exitOK = iota
	exitFailed
	// exitUsage means that the command line, or a file that it names, is wrong.
	exitUsage
)

// complain writes an error in one line.
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

// run parses the arguments and runs their command until it ends or ctx is done.
func run(ctx context.Context, args []string, std stdio) (status int) {
	o, done, status := parse(args, std)
	if done {
		return status
	}
	if o.command != commandCeiling { // which writes its own oom_score_adj
		// Other processes of the same user can then neither trace this one, nor reach the files
		// of its container by way of /proc. No kernel refuses it.
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
	if o.command != commandServe { // which logs them
		o.retired.warn(std.ignored)
	}
	commands := map[string]func(context.Context, *options, stdio) int{
		commandServe: runServe, commandAudit: runAudit, commandHealthcheck: runHealthcheck, commandVerdict: runVerdict, commandCeiling: runCeiling, commandPath: runPath, commandBandwidth: runBandwidth,
	}
	if command := commands[o.command]; command != nil {
		runtime.UnlockOSThread()
		return command(ctx, o, std)
	}
	return runChild(ctx, o, std)
}
