package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"rdma_exporter/internal/hardware/hardwaretest"
	"rdma_exporter/internal/state"
)

// TestDriverIsNotTold verifies that contracts are not checked if the kernel does not report the
// driver, since known errata would then count as violations. Probes run anyway.
func TestDriverIsNotTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := settings{Provider: providerLibibverbs}
	if d, err := driverOf(ctx, s, string(state.KindContract), "nosuch0"); !errors.Is(err, context.Canceled) {
		t.Errorf("for the contracts: %+v, %v", d, err)
	}
	if d, err := driverOf(ctx, s, string(state.KindProbe), "nosuch0"); err != nil || d.Name != "" {
		t.Errorf("for the probes: %+v, %v", d, err)
	}
}

// TestSoftRoCEWithoutNetlink verifies that sysfs shows the driver where netlink does not.
func TestSoftRoCEWithoutNetlink(t *testing.T) {
	s := settings{Provider: providerLibibverbs, Hardware: hardwareSettings{Sysfs: filepath.Join(hardwaretest.Tree(t, "rxe"), "sys")}}
	if d, err := driverOf(t.Context(), s, string(state.KindContract), "rxe0"); err != nil || d.Name != "rxe" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestReleaseOf(t *testing.T) {
	for file, want := range map[string]string{
		"libibverbs.so.1.14.44.0": "44.0", "libibverbs.so.1.18.65.12": "65.12",
		"libibverbs.so.1": "", "libibverbs.so.1.14": "", "libibverbs.so.1.14.44.0.1": "", "libmlx5.so.1.24.44.0": "", "": "",
	} {
		if got := releaseOf(file); got != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
}
