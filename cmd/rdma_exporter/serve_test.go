package main

import (
	"context"
	"testing"
)

// TestEvaluateChanges verifies that each change is evaluated without a scrape, and that the
// goroutine ends with its context.
func TestEvaluateChanges(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	changed, evaluated, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		evaluateChanges(ctx, changed, func() { evaluated <- struct{}{} })
	}()
	for range 2 {
		changed <- struct{}{}
		<-evaluated
	}
	cancel()
	<-ended
}
