package state

// Light is why a run did as little as it could: it is not to disturb others, and they
// use the device, or nobody knows that they don't.
type Light struct {
	Reason LightReason `json:"reason"`
	// Detail says it in words.
	Detail string `json:"detail"`
}

// LightReason is why a run was light.
type LightReason string

// The reasons.
const (
	// LightBusy: another program holds queue pairs on the device.
	LightBusy LightReason = "busy"
	// LightUnknown: the kernel does not tell who holds queue pairs.
	LightUnknown LightReason = "unknown"
)

// LightReasons returns every reason.
func LightReasons() []LightReason { return []LightReason{LightBusy, LightUnknown} }
