package running

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what must happen at some time. It is no measure
// of how long that may take: a machine may be as busy as it likes.
const Patience = 3 * time.Minute

// Between two looks at what is waited for is a pause, at first a short one: looks take
// processor time, of which others, who are waited for, have need.
const shortest, longest = 20 * time.Millisecond, 300 * time.Millisecond

// Eventually waits until a condition holds, which what tells in words. A test whose
// condition does not hold within [Patience] fails and ends. It is to be called by the
// goroutine of the test, which calls the condition too.
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
