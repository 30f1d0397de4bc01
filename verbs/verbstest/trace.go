package verbstest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"rdma_exporter/verbs"
)

// maxErrno is the largest number that Linux uses as an errno. A negative number
// that was not negated is far above it.
const maxErrno = 4095

// recorder is a tracer that remembers the calls and finds fault with their order.
type recorder struct {
	mu     sync.Mutex // for the watchdog of a test, which looks at what hangs
	open   []verbs.Verb
	calls  []verbs.Call
	faults []string
}

// Begin implements verbs.Tracer.
func (r *recorder) Begin(v verbs.Verb) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(verbs.Verbs(), v) {
		r.faultf("Begin(%s): no such verb", v)
	}
	if len(r.open) > 0 {
		r.faultf("Begin(%s) inside %s", v, r.open[len(r.open)-1])
	}
	r.open = append(r.open, v)
}

// End implements verbs.Tracer.
func (r *recorder) End(c verbs.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.open, c.Verb); i < 0 {
		r.faultf("End(%s) without Begin", c.Verb)
	} else {
		r.open = slices.Delete(r.open, i, i+1)
	}
	if c.Duration < 0 {
		r.faultf("End(%s): negative duration %v", c.Verb, c.Duration)
	}
	if c.Errno > maxErrno {
		r.faultf("End(%s): %d is no positive errno", c.Verb, int(c.Errno))
	}
	r.calls = append(r.calls, c)
}

func (r *recorder) faultf(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// all returns the calls since a mark.
func (r *recorder) all(mark int) []verbs.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls[mark:])
}

// mark returns the present position in the record, for since.
func (r *recorder) mark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// since returns the calls of one verb that ended after the mark.
func (r *recorder) since(mark int, v verbs.Verb) []verbs.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []verbs.Call
	for _, c := range r.calls[mark:] {
		if c.Verb == v {
			calls = append(calls, c)
		}
	}
	return calls
}

// inside says which verbs have begun and not ended.
func (r *recorder) inside() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.open) == 0 {
		return "no verb"
	}
	names := make([]string, len(r.open))
	for i, v := range r.open {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}

// verdict returns every fault of the record, now that all calls have returned.
func (r *recorder) verdict() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	faults := slices.Clone(r.faults)
	for _, v := range r.open {
		faults = append(faults, fmt.Sprintf("Begin(%s) without End", v))
	}
	return faults
}
