//go:build cgo && linux

package ibverbs

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// What the Go runtime maps for its own tables is no cost of an object. Finalizers are
// in such tables.
func TestMemoryOfRuntime(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var kept []*[4]int
	chunks, costless := 0, 0
	for range 500 {
		if costless > 0 {
			break
		}
		before, err := processMemory()
		if err != nil {
			t.Fatal(err)
		}
		for range 400 {
			p := new([4]int)
			runtime.SetFinalizer(p, func(*[4]int) {})
			kept = append(kept, p)
		}
		after, err := processMemory()
		if err != nil {
			t.Fatal(err)
		}
		if after.Virtual >= before.Virtual+256<<10 && after.Runtime > before.Runtime {
			chunks++
			// A thread that starts meanwhile costs address space, too.
			if after.Since(before).Virtual == 0 {
				costless++
			}
		}
	}
	runtime.KeepAlive(kept)
	if chunks == 0 || costless == 0 {
		t.Errorf("the runtime mapped memory %d times, of which %d are told from what an object costs", chunks, costless)
	}
}
