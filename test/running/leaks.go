package running

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// WithoutLeaks runs the tests of a package and returns the status to exit with. It is not zero if they leave
// goroutines or children behind.
func WithoutLeaks(m *testing.M) int {
	before := runtime.NumGoroutine()
	code := m.Run()
	// What fuzzes has goroutines of its own.
	if code != 0 || flag.Lookup("test.fuzz").Value.String() != "" {
		return code
	}
	for deadline := time.Now().Add(Patience); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "goroutines leaked: %d before, %d after\n", before, runtime.NumGoroutine())
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			return 1
		}
	}
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if !errors.Is(err, unix.ECHILD) {
		fmt.Fprintf(os.Stderr, "a child was left behind: %v\n", err)
		return 1
	}
	return 0
}
