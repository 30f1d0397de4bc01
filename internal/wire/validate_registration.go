package wire

import (
	"fmt"
	"slices"

	"rdma_exporter/internal/state"
)

// validateRegistration makes sure that a registration is one of memory that is known, with
// what belongs to its result and nothing else.
func validateRegistration(r *state.Registration) error {
	if !slices.Contains(state.RegisteredMemories(), r.Memory) || !slices.Contains(state.RegistrationResults(), r.Result) || r.Bytes < 1 || r.Duration < 0 {
		return fmt.Errorf("%d bytes of memory %.64q were registered in %d ns with result %.64q", r.Bytes, r.Memory, r.Duration, r.Result)
	}
	refused := r.Result == state.MemoryRefused
	if refused != (r.By != "") || refused && !slices.Contains(state.AllRefusedBy(), r.By) || r.Errno != "" && (!refused || !isLabel(r.Errno)) {
		return fmt.Errorf("registering %s: %s by %.64q with errno %.64q", r.Memory, r.Result, r.By, r.Errno)
	}
	return nil
}
