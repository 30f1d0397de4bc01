package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"rdma_exporter/internal/state"
)

// MaxInput limits the standard input of a child, in bytes.
const MaxInput = 16 << 20

// Request is what one child is asked to do. It depends on the results of earlier children.
// The zero value asks for everything.
type Request struct {
	// Facts are the facts that earlier probe runs found out about the device.
	Facts *state.Facts `json:"facts,omitempty"`
	// Short requests a short probe run. A run that cannot use Facts is full anyway.
	Short bool `json:"short,omitempty"`
	// Done names the contracts that an earlier child of the same contract run checked.
	Done []string `json:"done,omitempty" wire:"word,max=128"`
	// WithoutCompletions leaves out the contracts that need completions.
	WithoutCompletions bool `json:"without_completions,omitempty"`
	// LeakCandidates lists device contexts that should have left nothing.
	LeakCandidates []state.Context `json:"leak_candidates,omitempty"`
	// MaxFill is the maximum number of completions that one side of a queue pair can have
	// outstanding. Zero means unknown.
	MaxFill int64 `json:"max_fill,omitempty"`
	// Hardware is what a reading of the hardware reads. Nil means nothing.
	Hardware *HardwareRequest `json:"hardware,omitempty"`
	// Path is which peer to ask, and RC adds a message on a reliable connection.
	Path *state.Path `json:"path,omitempty"`
	RC   bool        `json:"rc,omitempty"`
}

// HardwareRequest is what a child reads of the hardware.
type HardwareRequest struct {
	Devices []string `json:"devices" wire:"device,max=2048"`
	// Skip lists the counters that the kernel refused to read before.
	Skip []SkipCounters `json:"skip,omitempty" wire:"max=524288"`
}

// SkipCounters is a group of counters of a port that is not read. Port 0 is the device as a
// whole.
type SkipCounters struct {
	Device string             `json:"device" wire:"device"`
	Port   int                `json:"port"`
	Group  state.CounterGroup `json:"group"`
}

// Input is the standard input of a child. A child reads no files of the configuration but
// those with credentials for peers: editing any other cannot break a run.
type Input[S any] struct {
	Request Request `json:"request"`
	// Settings are the same for each child of a device.
	Settings S `json:"settings"`
}

// ReadInput reads the standard input of a child. What it leaves out is as in settings.
func ReadInput[S any](r io.Reader, settings S) (Input[S], error) {
	in := Input[S]{Settings: settings}
	dec := json.NewDecoder(io.LimitReader(r, MaxInput))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
		return in, fmt.Errorf("read the settings from standard input: %w", err)
	}
	if err := check(&in.Request); err != nil {
		return in, fmt.Errorf("the request on standard input: %w", err)
	}
	return in, nil
}
