package main

import (
	"context"
	"testing"
)

// TestJudgeChanges verifies that each change is judged at once, without a scrape, and that
// the goroutine ends with its context.
func TestJudgeChanges(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	changed, judged, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		judgeChanges(ctx, changed, func() { judged <- struct{}{} })
	}()
	for range 2 {
		changed <- struct{}{}
		<-judged
	}
	cancel()
	<-ended
}
