//go:build vm

package softroce

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/links"
	"rdma_exporter/test/running"
)

// batch gives ip(8) all lines at once, which it carries out as fast as it can.
func batch(t *testing.T, lines ...string) {
	t.Helper()
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ip: %v\n%s", err, out)
	}
}

// A linkEvent is an event of the network device with an index, and the state of the device when
// the event was handled. Index zero is a loss of events.
type linkEvent struct {
	ifindex int
	state   string
}

// TestLinkWatch verifies that each change of a network device is reported, a loss of events, and
// the end of the device. An event counts for a change only if the device has the state that the
// change made.
func TestLinkWatch(t *testing.T) {
	running.Command(t, "ip", "link", "add", "flap0", "type", "veth", "peer", "name", "flap0peer")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "flap0").Run() })
	running.Command(t, "ip", "link", "set", "flap0peer", "up")
	flapped := running.Must(net.InterfaceByName("flap0"))(t)
	events := make(map[linkEvent]int)
	var mu, pause sync.Mutex
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- links.Watch(ctx, func(ifindex int) {
			pause.Lock()
			defer pause.Unlock()
			event := linkEvent{ifindex: ifindex}
			switch device, err := net.InterfaceByIndex(ifindex); {
			case ifindex == 0:
				event.state = "lost"
			case err != nil:
				event.state = "gone"
			case device.Flags&net.FlagUp != 0:
				event.state = "up"
			default:
				event.state = "down"
			}
			mu.Lock()
			defer mu.Unlock()
			events[event]++
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended with %v", err)
		}
	})
	count := func(event linkEvent) int {
		mu.Lock()
		defer mu.Unlock()
		return events[event]
	}
	// await waits for the event of a change, and repeats the change until somebody listens.
	await := func(want linkEvent, change func()) {
		t.Helper()
		before := count(want)
		for deadline := time.Now().Add(patience); count(want) == before; time.Sleep(poll) {
			if time.Now().After(deadline) {
				t.Fatalf("no event %+v", want)
			}
			change()
		}
	}
	set := func(state string) func() { return func() { running.Command(t, "ip", "link", "set", "flap0", state) } }
	await(linkEvent{flapped.Index, "up"}, func() { set("down")(); set("up")() })
	for range 20 {
		await(linkEvent{flapped.Index, "down"}, set("down"))
		await(linkEvent{flapped.Index, "up"}, set("up"))
	}
	await(linkEvent{0, "lost"}, func() {
		pause.Lock()
		defer pause.Unlock()
		batch(t, slices.Repeat([]string{"link set flap0 down", "link set flap0 up"}, 200)...)
	})
	await(linkEvent{flapped.Index, "gone"}, func() { _ = exec.Command("ip", "link", "del", "flap0").Run() })
}
