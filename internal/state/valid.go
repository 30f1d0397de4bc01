package state

import "slices"

// Valid reports whether the status is known.
func (s Status) Valid() bool { return s == StatusOK || s == StatusFailed || s == StatusSkipped }

// Valid reports whether the verdict is known.
func (v Verdict) Valid() bool { return slices.Contains(Verdicts(), v) }

// Valid reports whether the severity is known.
func (s Severity) Valid() bool { return slices.Contains(Severities(), s) }

// Valid reports whether the reason is known.
func (r ReducedReason) Valid() bool { return r == ReducedBusy || r == ReducedUnknown }

// Valid reports whether the depth is known.
func (d Depth) Valid() bool { return d == DepthFull || d == DepthShort || d == DepthReduced }

// Valid reports whether the result is known.
func (r InlineResult) Valid() bool {
	return r == InlineSent || r == InlineUntried || r == InlineFailed
}

// Valid reports whether the kind of memory is known.
func (m RegisteredMemory) Valid() bool { return slices.Contains(RegisteredMemories(), m) }

// Valid reports whether the result is known.
func (r RegistrationResult) Valid() bool { return r == MemoryRegistered || r == MemoryRefused }

// Valid reports whether it is known to refuse memory.
func (r RefusedBy) Valid() bool { return slices.Contains(AllRefusedBy(), r) }

// Valid reports whether the path is known.
func (p LatencyPath) Valid() bool { return slices.Contains(LatencyPaths(), p) }

// Valid reports whether the mode is known.
func (m LatencyMode) Valid() bool { return slices.Contains(LatencyModes(), m) }

// Valid reports whether the group is known.
func (g CounterGroup) Valid() bool { return slices.Contains(CounterGroups(), g) }

// Valid reports whether the kind of owner is known.
func (k OwnerKind) Valid() bool {
	return slices.Contains([]OwnerKind{OwnerUser, OwnerKernel, OwnerExporter, OwnerUnknown}, k)
}

// Valid reports whether the reason is known.
func (r IncompleteReason) Valid() bool { return slices.Contains(IncompleteReasons(), r) }
