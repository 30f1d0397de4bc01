//go:build vm

package peers

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var (
	runs     = flag.Int("peers.runs", 3, "how often everything is measured")
	idleTime = flag.Duration("peers.idle", 2*time.Minute, "how long the cost of an exporter that is scraped as usual is measured")
)

// The programs that are measured.
var (
	exporterFile     = os.Getenv("RDMA_EXPORTER_BINARY")
	nodeExporterFile = os.Getenv("RDMA_NODE_EXPORTER")
	holderFile       = os.Getenv("RDMA_HOLDER")
)

// all is what was measured, in the order in which it is printed.
var all report

func TestMain(m *testing.M) {
	for name, file := range map[string]string{
		"RDMA_EXPORTER_BINARY": exporterFile, "RDMA_NODE_EXPORTER": nodeExporterFile, "RDMA_HOLDER": holderFile,
	} {
		if err := program(name, file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	status := m.Run()
	all.print(os.Stdout)
	os.Exit(status)
}

// program makes sure that an environment variable names a program.
func program(name, file string) error {
	if !filepath.IsAbs(file) {
		return fmt.Errorf("%s is %q: set it to an absolute path, as make bench-peers does", name, file)
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("%s: %w: build it first, as make bench-peers does", name, err)
	}
	return nil
}

// say tells how far the measurements are.
func say(t *testing.T, format string, args ...any) {
	t.Helper()
	fmt.Fprintf(os.Stderr, "peers: %s: %s\n", t.Name(), fmt.Sprintf(format, args...))
}
