package running

import (
	"testing"
	"time"
)

// Patience is how long a test waits for something that must happen, however busy the machine.
const Patience = 6 * time.Minute

// The pause between two checks grows, since checks take CPU time from the processes that the
// test waits for.
const shortest, longest = 20 * time.Millisecond, 300 * time.Millisecond

// Eventually waits until a condition holds, which what describes. The test fails and ends if it
// does not hold within [Patience]. Only the goroutine of the test may call it.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	Within(t, Patience, what, condition)
}

// Within is [Eventually] for what may need longer than others.
func Within(t testing.TB, patience time.Duration, what string, condition func() bool) {
	t.Helper()
	pause := shortest
	for deadline := time.Now().Add(patience); !condition(); pause = min(pause*5/4, longest) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v not yet: %s", patience, what)
		}
		time.Sleep(pause)
	}
}
