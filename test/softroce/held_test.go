//go:build vm

package softroce

import (
	"testing"
	"time"
)

// Nothing is held of any device while no child runs.
func TestHoldsNothingBetweenRuns(t *testing.T) {
	const (
		wantRounds = 4
		wantQuiet  = 10
	)
	before := rawResources(t)
	interval := spacing(t)
	e := start(t, options{lean: true, flags: []string{spaced(interval), "--contract.interval=1h"}})
	quiet, busy, shown := 0, 0, 0
	deadline := time.Now().Add(patience + 2*wantRounds*interval)
	m := e.scrape()
	for quiet < wantQuiet || shown == 0 || min(m.runs(active), m.runs(down)) < wantRounds {
		if time.Now().After(deadline) {
			t.Fatalf("%d samples while no child ran, and %v and %v runs", quiet, m.runs(active), m.runs(down))
		}
		// A sample counts if no child was there before and after it, and none came
		// and went meanwhile. One child must be seen, or the others prove nothing.
		reapedBefore, childBefore := reaped(t, e.pid()), len(children(t, e.pid())) > 0
		if !childBefore || shown == 0 {
			now := rawResources(t)
			switch {
			case childBefore || len(children(t, e.pid())) > 0 || reaped(t, e.pid()) != reapedBefore:
				busy++
				if now != before {
					shown++
				}
			case now != before:
				t.Fatalf("between two runs the kernel holds\n%s\nand held before\n%s", now, before)
			default:
				quiet++
			}
		}
		time.Sleep(poll)
		m = e.scrape()
	}
	m.allOK(t, active)
	m.allOK(t, down)
	t.Logf("%v and %v runs; %d samples while no child ran; %d while one did, of which %d show its objects",
		m.runs(active), m.runs(down), quiet, busy, shown)
	e.terminate()
	awaitHeld(t, before, rawResources)
}
