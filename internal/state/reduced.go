package state

// Depth is how much a probe run covers.
type Depth string

// The depths of a probe run.
const (
	// DepthFull covers all sizes and types, the largest inline data, each completion
	// vector of the set, and each port.
	DepthFull Depth = "full"
	// DepthShort covers one small object of each kind and notification on one vector.
	DepthShort Depth = "short"
	// DepthReduced covers one small CQ and one small QP that stays in RESET.
	DepthReduced Depth = "reduced"
)

// Reduced is why a run did as little as possible.
type Reduced struct {
	Reason ReducedReason `json:"reason"`
	Detail string        `json:"detail"`
}

// ReducedReason is the kind of reason for a reduced run.
type ReducedReason string

// The reasons: another program holds queue pairs on the device, or the kernel does not report
// whether any does.
const (
	ReducedBusy    ReducedReason = "busy"
	ReducedUnknown ReducedReason = "unknown"
)
