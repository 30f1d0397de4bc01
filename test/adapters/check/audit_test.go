//go:build vm

package check

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rdma_exporter/internal/api"
	"rdma_exporter/test/running"
)

// What the machine writes is lost with it: the files are made from what is printed.
var printed = flag.String("check.print", "", "print what files of testdata must be, each behind a line with its name: all, or those that this version of rdma-core has for itself")

// TestAudit has the exporter audit every paper adapter of the machine, and compares
// its report on each with what the adapter's library and kernel driver make a correct
// answer: the files of testdata.
func TestAudit(t *testing.T) {
	list := adapters(t)
	before := held(t)
	devices := running.Must(audit(t))(t)
	for _, a := range list {
		t.Run(a.spec, func(t *testing.T) {
			i := slices.IndexFunc(devices, func(d api.Device) bool { return d.Name == a.name })
			if i < 0 {
				t.Fatalf("the audit says nothing of %s", a.name)
			}
			got := summary(devices[i])
			t.Logf("%s: %v", a.name, a.counters(t))
			file, own := expected(t, a.spec)
			want, err := os.ReadFile(file)
			switch {
			case *printed == "all":
				fmt.Printf("== %s\n%s", file, got)
			case *printed == "version" && got != string(want):
				fmt.Printf("== %s\n%s", own, got)
			case err != nil:
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the exporter says\n%s\nand should say, by %s,\n%s", got, file, want)
			}
		})
	}
	if after := held(t); after != before {
		t.Errorf("the kernel holds\n%s\nand held before\n%s", after, before)
	}
}

// expected returns the file with the expected report on an adapter, and the one for the
// machine's version of rdma-core alone, which is the first one if it is there.
func expected(t testing.TB, spec string) (file, own string) {
	t.Helper()
	own = filepath.Join("testdata", spec+"@"+rdmaCore(t)+".txt")
	if _, err := os.Stat(own); err == nil {
		return own, own
	}
	return filepath.Join("testdata", spec+".txt"), own
}
