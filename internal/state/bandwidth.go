package state

import (
	"cmp"
	"slices"
	"time"
)

// Bandwidth is how fast a device reaches the memory of each NUMA node.
type Bandwidth struct {
	Device string `json:"device" wire:"device"`
	// Time is when the measurement began. A child leaves it to its parent.
	Time time.Time `json:"time,omitzero"`
	// Skipped is why ports or nodes were not measured, Interrupted why cells are missing, and
	// Failure what failed.
	Skipped     string          `json:"skipped,omitempty"`
	Interrupted string          `json:"interrupted,omitempty"`
	Failure     string          `json:"failure,omitempty"`
	Cells       []BandwidthCell `json:"cells,omitempty"`
	// Hardware has the adapter and the rates of its ports.
	Hardware *Hardware `json:"hardware,omitempty"`
	PCI      PCIPath   `json:"pci_path"`
}

// BandwidthCell is the better of the measurements of one kind, of a port that reaches itself.
type BandwidthCell struct {
	Port int `json:"port" wire:"key"`
	Node int `json:"numa_node" wire:"key"`
	// Operation is write or read. Size is that of messages.
	Operation         string  `json:"operation" wire:"word,key"`
	Size              int     `json:"size_bytes" wire:"key"`
	Inline            bool    `json:"inline,omitempty" wire:"key"`
	QPs               int     `json:"qps" wire:"key"`
	BytesPerSecond    float64 `json:"bytes_per_second"`
	MessagesPerSecond float64 `json:"messages_per_second"`
	// Best is the highest rate of this adapter in all scheduled measurements.
	Best float64 `json:"best_bytes_per_second,omitempty"`
}

// LargeMessage is the size of the messages that show the bandwidth, in bytes.
const LargeMessage = 1 << 20

// PCIPath is how data passes from a PCI function to memory. Empty fields are unknown.
type PCIPath struct {
	MaxPayload      int    `json:"max_payload_bytes,omitempty"`
	MaxReadRequest  int    `json:"max_read_request_bytes,omitempty"`
	RelaxedOrdering *bool  `json:"relaxed_ordering,omitempty"`
	ACSRedirect     *bool  `json:"acs_redirect,omitempty"` // of any bridge on the way
	IOMMU           string `json:"iommu,omitempty" wire:"name"`
}

// BandwidthState is what the scheduled measurements of a device found.
type BandwidthState struct {
	// Measured is the last measurement that ended well. Nil if none did.
	Measured *Bandwidth `json:"measured,omitempty"`
	// Large has its best cell with large messages for each port, NUMA node and operation.
	Large []BandwidthCell `json:"large,omitempty"`
	// Tried is when the last measurement began, or was refused. Detail is why its result is not ok.
	Tried  time.Time       `json:"tried"`
	Result BandwidthResult `json:"result"`
	Detail string          `json:"detail,omitempty"`
	// Failures counts the measurements in a row that did not end well.
	Failures int `json:"failures,omitempty"`
}

// BandwidthResult is how a scheduled measurement ended.
type BandwidthResult string

// The results. In use means that it did not begin, since others use the device or the kernel does not
// say whether they do; interrupted, that it stopped for them; skipped, that no port can be measured.
const (
	BandwidthOK          BandwidthResult = "ok"
	BandwidthInUse       BandwidthResult = "in_use"
	BandwidthInterrupted BandwidthResult = "interrupted"
	BandwidthSkipped     BandwidthResult = "skipped"
	BandwidthFailed      BandwidthResult = "failed"
)

// Measured returns how a run that measures ended, and why it did not end well.
func (r *Run) Measured() (result BandwidthResult, detail string) {
	b := cmp.Or(r.Bandwidth, new(Bandwidth))
	switch {
	case r.Outcome != OutcomeOK:
		return BandwidthFailed, r.Error
	case r.Reduced != nil:
		return BandwidthInUse, r.Reduced.Detail
	case b.Interrupted != "":
		return BandwidthInterrupted, b.Interrupted
	case len(b.Cells) == 0 || b.Hardware == nil:
		return BandwidthSkipped, b.Skipped
	}
	return BandwidthOK, ""
}

// Next returns the state after a measurement. What another adapter moved does not count.
func (s BandwidthState) Next(run *Run) BandwidthState {
	s.Tried, s.Failures = run.Started, s.Failures+1
	if s.Result, s.Detail = run.Measured(); s.Result != BandwidthOK {
		return s
	}
	b, past := *run.Bandwidth, s.Large
	if s.Measured != nil && !s.Measured.Of(&b.Hardware.Identity) {
		past = nil
	}
	b.Time, s.Measured, s.Large, s.Failures = run.Started, &b, nil, 0
	for _, c := range b.Cells {
		same := func(o BandwidthCell) bool { return o.Port == c.Port && o.Node == c.Node && o.Operation == c.Operation }
		c.Best = c.BytesPerSecond
		for _, o := range slices.Concat(past, s.Large) {
			if same(o) {
				c.Best = max(c.Best, o.Best)
			}
		}
		if i := slices.IndexFunc(s.Large, same); c.Size >= LargeMessage && (i < 0 || c.BytesPerSecond > s.Large[i].BytesPerSecond) {
			s.Large = append(slices.DeleteFunc(s.Large, same), c)
		}
	}
	return s
}

// Of reports whether the measurement can be of an adapter, as of LinkHistory.
func (b *Bandwidth) Of(a *Adapter) bool {
	was := cmp.Or(b.Hardware, new(Hardware)).Identity
	return (&LinkHistory{PCI: was.PCI, BoardID: was.BoardID}).Of(a)
}
