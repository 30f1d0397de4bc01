//go:build !cgo || !linux

package ibverbs

import (
	"fmt"

	"rdma_exporter/verbs"
)

type provider struct{}

// New returns a provider that has no devices and says why.
func New(verbs.Tracer) verbs.Provider { return provider{} }

// Available returns an error that matches verbs.ErrUnavailable.
func Available() error {
	return fmt.Errorf("%w: this build has no libibverbs (it was made with CGO_ENABLED=0 or not for Linux); rebuild with cgo and libibverbs-dev", verbs.ErrUnavailable)
}

func (provider) Open(string) (verbs.Device, error) { return nil, Available() }
