package running_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"rdma_exporter/test/running"
)

func TestRefusing(t *testing.T) {
	t.Parallel()
	address := running.Refusing(t)
	if _, err := new(net.Dialer).DialContext(t.Context(), "tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("who connects is told %v", err)
	}
	if _, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("who would listen is told %v", err)
	}
}
