package simulated

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"
)

// times draws how long the completions of one device take.
type times struct {
	CompletionLatency
	rng *rand.Rand
}

// newTimes returns the times of a device. They come in the same order whenever
// its name is the same.
func newTimes(name string, l CompletionLatency) *times {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(name)) // a hash.Hash never fails
	return &times{CompletionLatency: l, rng: rand.New(rand.NewPCG(seed.Sum64(), 0))}
}

// median returns the median of the times of a CQ's completions; 0 if there is
// none.
func (t *times) median(q *cq, polled bool) time.Duration {
	if polled {
		return t.Polled
	}
	if slow, ok := t.SlowVectors[q.vector]; ok {
		return slow
	}
	return t.Notified
}

// draw returns a time of the distribution with a median.
func (t *times) draw(median time.Duration) time.Duration {
	const (
		rare = 200 // one time in so many is of the tail
		tail = 20  // and longer by so much on average, at a jitter of 1
		most = 100 // medians that a time may have
	)
	factor := math.Exp(t.Jitter * t.rng.NormFloat64())
	if t.rng.IntN(rare) == 0 {
		factor *= 1 + t.Jitter*tail*t.rng.ExpFloat64()
	}
	return max(1, time.Duration(float64(median)*min(factor, most)))
}
