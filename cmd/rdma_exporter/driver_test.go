package main

import "testing"

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
