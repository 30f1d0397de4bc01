package state

import "time"

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
}

// PCIPath is how data passes from a PCI function to memory. Empty fields are unknown.
type PCIPath struct {
	MaxPayload      int    `json:"max_payload_bytes,omitempty"`
	MaxReadRequest  int    `json:"max_read_request_bytes,omitempty"`
	RelaxedOrdering *bool  `json:"relaxed_ordering,omitempty"`
	ACSRedirect     *bool  `json:"acs_redirect,omitempty"` // of any bridge on the way
	IOMMU           string `json:"iommu,omitempty" wire:"name"`
}
