package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"rdma_exporter/internal/state"
)

// MaxInput is the most bytes that a child reads of its standard input.
const MaxInput = 16 << 20

// Request is what one child is asked to do, because of what became of those before it.
// The zero value asks for everything.
type Request struct {
	// Facts are what earlier runs of the probes found out about the device, and Turn is
	// the number of this one's turn; without one, it does everything.
	Facts *state.Facts `json:"facts,omitempty"`
	Turn  *int         `json:"turn,omitempty"`
	// Judged are the contracts that are not to be judged, because an earlier child of the
	// same contract run did.
	Judged []string `json:"judged,omitempty"`
	// WithoutCompletions leaves out the contracts that need some.
	WithoutCompletions bool `json:"without_completions,omitempty"`
	// Look are opened devices of which the inventory should find nothing left, and MaxFill
	// is the most completions that one side of a queue pair can have outstanding; 0 if
	// that is not known.
	Look    []state.Context `json:"look,omitempty"`
	MaxFill int64           `json:"max_fill,omitempty"`
	// Hardware is what a reading of the hardware reads; nil for nothing.
	Hardware *HardwareRequest `json:"hardware,omitempty"`
}

// HardwareRequest is what a child reads of the hardware.
type HardwareRequest struct {
	// Devices are those that it reads.
	Devices []string `json:"devices"`
	// Skip are the counters that it leaves alone, because the kernel refused them.
	Skip []SkipCounters `json:"skip,omitempty"`
}

// SkipCounters are the counters of a group and port, 0 for the device as a whole, that are
// not read.
type SkipCounters struct {
	Device string             `json:"device"`
	Port   int                `json:"port"`
	Group  state.CounterGroup `json:"group"`
}

// Input is all that a child is told. It reads no file, so that one that was changed
// meanwhile cannot make runs fail.
type Input[S any] struct {
	Request Request `json:"request"`
	// Settings are the same for each child of a device.
	Settings S `json:"settings"`
}

// ReadInput reads what a child is told. What is not said, and all of it where there is
// nothing to read, is as the settings that are given.
func ReadInput[S any](r io.Reader, settings S) (Input[S], error) {
	in := Input[S]{Settings: settings}
	b, err := io.ReadAll(io.LimitReader(r, MaxInput+1))
	if err != nil {
		return in, fmt.Errorf("read the settings from standard input: %w", err)
	}
	if len(b) > MaxInput {
		return in, fmt.Errorf("read the settings from standard input: %w: more than %d bytes", ErrTooLarge, MaxInput)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return in, nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return in, fmt.Errorf("read the settings from standard input: %w", err)
	}
	return in, in.Request.validate()
}

func (r *Request) validate() error {
	if r.Turn != nil && *r.Turn < 0 || r.MaxFill < 0 || len(r.Judged) > maxContracts {
		return fmt.Errorf("a request with turn %v, %d completions to fill and %d judged contracts makes no sense", r.Turn, r.MaxFill, len(r.Judged))
	}
	if h := r.Hardware; h != nil && (len(h.Devices) > MaxDevices || len(h.Skip) > MaxDevices*maxPorts) {
		return fmt.Errorf("%w: a request to read the hardware of %d devices, without %d groups of counters", ErrTooLarge, len(h.Devices), len(h.Skip))
	}
	if r.Facts != nil {
		return validateFacts(r.Facts)
	}
	return nil
}
