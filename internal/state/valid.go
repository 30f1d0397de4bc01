package state

import "slices"

// Valid reports whether s is one of the statuses.
func (s Status) Valid() bool {
	return slices.Contains([]Status{StatusOK, StatusFailed, StatusSkipped}, s)
}

// Valid reports whether v is one of the verdicts.
func (v Verdict) Valid() bool { return slices.Contains(Verdicts(), v) }

// Valid reports whether s is one of the severities.
func (s Severity) Valid() bool { return slices.Contains(Severities(), s) }

// Valid reports whether r is one of the reasons.
func (r ReducedReason) Valid() bool { return slices.Contains(ReducedReasons(), r) }

// Valid reports whether the depth is known.
func (d Depth) Valid() bool { return slices.Contains(Depths(), d) }

// Valid reports whether r is one of the results.
func (r InlineResult) Valid() bool { return slices.Contains(InlineResults(), r) }

// Valid reports whether m is one of the kinds of memory.
func (m RegisteredMemory) Valid() bool { return slices.Contains(RegisteredMemories(), m) }

// Valid reports whether r is one of the results.
func (r RegistrationResult) Valid() bool { return slices.Contains(RegistrationResults(), r) }

// Valid reports whether r is one of the things that refuse memory.
func (r RefusedBy) Valid() bool { return slices.Contains(AllRefusedBy(), r) }

// Valid reports whether p is one of the paths.
func (p LatencyPath) Valid() bool { return slices.Contains(LatencyPaths(), p) }

// Valid reports whether m is one of the modes.
func (m LatencyMode) Valid() bool { return slices.Contains(LatencyModes(), m) }

// Valid reports whether g is one of the groups.
func (g CounterGroup) Valid() bool { return slices.Contains(CounterGroups(), g) }

// Valid reports whether k is one of the kinds of owner.
func (k OwnerKind) Valid() bool { return slices.Contains(OwnerKinds(), k) }

// Valid reports whether r is one of the reasons.
func (r IncompleteReason) Valid() bool { return slices.Contains(IncompleteReasons(), r) }
