//go:build vm

package check

import (
	"os"
	"strings"
	"testing"
)

// TestStray has a program post what none that means well does: an atomic operation with
// inline data too short for its result. It is to fail, and the adapter is to go on.
func TestStray(t *testing.T) {
	stray := os.Getenv("RDMA_STRAY")
	if stray == "" {
		t.Fatal("set RDMA_STRAY to the absolute path of the built test/stray")
	}
	for _, a := range adapters(t) {
		// It is libmlx5 that posts it as it is asked to.
		if a.of() != "mlx5" || a.is("limited") || a.is("down") {
			continue
		}
		t.Run(a.spec, func(t *testing.T) {
			gid := "3" // RoCE v2, IPv4
			if a.is("ib") {
				gid = "0"
			}
			for range 2 {
				out, err := output(t, stray, a.name, gid)
				if err != nil || strings.TrimSpace(out) != "local QP operation error" {
					t.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}
