//go:build vm

package softroce

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/links"
	"rdma_exporter/internal/state"
)

// A linkWatch keeps what links.Watch tells.
type linkWatch struct {
	t      *testing.T
	mu     sync.Mutex
	events []state.LinkEvent
	// pause, while it is locked, keeps the watch from taking events.
	pause sync.Mutex
}

// watchLinks watches until the test ends.
func watchLinks(t *testing.T) *linkWatch {
	t.Helper()
	w := &linkWatch{t: t}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- links.Watch(ctx, func(e state.LinkEvent) {
			w.pause.Lock()
			defer w.pause.Unlock()
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended with %v", err)
		}
	})
	return w
}

// of returns the events of a network device from the n-th event on.
func (w *linkWatch) of(name string, n int) (events []state.LinkEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events[n:] {
		if e.Name == name {
			events = append(events, e)
		}
	}
	return events
}

// seen is how many events there were.
func (w *linkWatch) seen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.events)
}

// await waits until the latest event of a network device is as it should be, and returns
// it. Before each look it runs a command, if there is one.
func (w *linkWatch) await(name string, is func(state.LinkEvent) bool, command ...string) state.LinkEvent {
	w.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(poll) {
		if command != nil {
			output(w.t, command[0], command[1:]...)
		}
		if events := w.of(name, 0); len(events) > 0 && is(events[len(events)-1]) {
			return events[len(events)-1]
		}
	}
	w.t.Fatalf("never told of %s: %+v", name, w.of(name, 0))
	return state.LinkEvent{}
}

// ask is await of a network device that is up and may have no more to tell: it has the
// kernel tell of it again, whatever was told before the watch listened, or was lost.
func (w *linkWatch) ask(name string, is func(state.LinkEvent) bool) state.LinkEvent {
	w.t.Helper()
	return w.await(name, is, "ip", "link", "set", name, "alias", name)
}

// changes counts how often a network device went down and up by its events from the n-th
// on; it is up before.
func (w *linkWatch) changes(name string, n int) (downs, ups int) {
	up := true
	for _, e := range w.of(name, n) {
		if e.Up == up {
			continue
		}
		if up = e.Up; up {
			ups++
		} else {
			downs++
		}
	}
	return downs, ups
}

// batch gives ip(8) all lines at once, which it carries out as fast as it can.
func batch(t *testing.T, lines ...string) {
	t.Helper()
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ip: %v\n%s", err, out)
	}
}

// TestLinkWatch flaps network devices and counts what the watch tells of it.
func TestLinkWatch(t *testing.T) {
	const flaps = 20
	w := watchLinks(t)
	for i := range 2 {
		name := fmt.Sprint("flap", i)
		output(t, "ip", "link", "add", name, "type", "veth", "peer", "name", name+"peer")
		t.Cleanup(func() { _ = exec.Command("ip", "link", "del", name).Run() })
		output(t, "ip", "link", "set", name+"peer", "up")
		output(t, "ip", "link", "set", name, "up")
	}
	isUp := func(e state.LinkEvent) bool { return e.Up && e.HasCounts }
	w.ask("flap0", isUp)
	w.ask("flap1", isUp)
	linkSettles(w, "flap0")
	linkSettles(w, "flap1")

	t.Run("set down and up", func(t *testing.T) {
		before, n := w.await("flap0", isUp), w.seen()
		for range flaps {
			output(t, "ip", "link", "set", "flap0", "down")
			output(t, "ip", "link", "set", "flap0", "up")
		}
		after := w.await("flap0", func(e state.LinkEvent) bool { return e.Up && e.CarrierDowns-before.CarrierDowns >= flaps })
		downs, ups := w.changes("flap0", n)
		t.Logf("%d events", len(w.of("flap0", n)))
		if downs != flaps || ups != flaps {
			t.Errorf("%d downs and %d ups", downs, ups)
		}
		if after.CarrierDowns-before.CarrierDowns != flaps || after.CarrierUps-before.CarrierUps != flaps {
			t.Errorf("the carrier: %+v, before %+v", after, before)
		}
	})
	t.Run("events are lost", func(t *testing.T) {
		const flaps = 200
		before, n := w.await("flap0", isUp), w.seen()
		w.pause.Lock()
		batch(t, slices.Repeat([]string{"link set flap0 down", "link set flap0 up"}, flaps)...)
		w.pause.Unlock()
		after := w.ask("flap0", func(e state.LinkEvent) bool { return e.Up && e.CarrierUps-before.CarrierUps >= flaps })
		if after.CarrierDowns-before.CarrierDowns != flaps || after.CarrierUps-before.CarrierUps != flaps {
			t.Errorf("the carrier: %+v, before %+v", after, before)
		}
		lost := len(w.of("", n))
		t.Logf("%d events, %d times lost", len(w.of("flap0", n)), lost)
		if lost == 0 {
			t.Error("none is lost: flap it more often")
		}
	})
	t.Run("gone", func(t *testing.T) {
		output(t, "ip", "link", "del", "flap1")
		w.await("flap1", func(e state.LinkEvent) bool { return e.Removed })
		w.await("flap1peer", func(e state.LinkEvent) bool { return e.Removed })
	})
}

// linkSettles waits until the kernel has told all that it had to tell of a network device.
func linkSettles(w *linkWatch, name string) {
	w.t.Helper()
	for {
		n := w.seen()
		time.Sleep(2 * time.Second)
		if len(w.of(name, n)) == 0 {
			return
		}
	}
}
