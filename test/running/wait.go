package running

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what must happen at some time. It is no measure
// of how long that may take: a machine may be as busy as it likes.
const Patience = 3 * time.Minute

// pause is between two looks at what is waited for.
const pause = 50 * time.Millisecond

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
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v not yet: %s", patience, what)
		}
	}
}
