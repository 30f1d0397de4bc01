//go:build cgo && linux

package ibverbs

import (
	"strings"
	"testing"
)

// TestIsEFA: by the file of the library alone it is told who may have SRD.
func TestIsEFA(t *testing.T) {
	for file, want := range map[string]bool{
		"/usr/lib/x86_64-linux-gnu/libibverbs/libefa-rdmav34.so": true,
		"/usr/lib/x86_64-linux-gnu/libefa.so.1.2.44.0":           true,
		"/opt/libefa/libmlx5-rdmav34.so":                         false,
		"/lib/libefax-rdmav34.so":                                false,
		"/lib/x86_64-linux-gnu/libibverbs.so.1":                  false,
		"libefa":                                                 false,
		"":                                                       false,
	} {
		if got := isEFA(file); got != want {
			t.Errorf("isEFA(%q) = %t", file, got)
		}
	}
}

// TestWithoutSRD: why there is no SRD says what to do where that is a matter of the
// library.
func TestWithoutSRD(t *testing.T) {
	for file, want := range map[string]string{
		"/nowhere/libefa-rdmav34.so":  "/nowhere/libefa-rdmav34.so has no efadv_create_qp_ex (EFA_1.1), which libefa of rdma-core 26 and later has: install a newer one (Debian: ibverbs-providers,",
		"/nowhere/libmlx5-rdmav34.so": "only efa has SRD queue pairs",
		"":                            "only efa has SRD queue pairs",
	} {
		if create, err := srdOf(file); create != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("srdOf(%q) = %v; want %s…", file, err, want)
		}
	}
}
