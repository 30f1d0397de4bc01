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

// TestLinkWatch verifies that each change of a network device is reported, a loss of events, and
// the end of the device.
func TestLinkWatch(t *testing.T) {
	output(t, "ip", "link", "add", "flap0", "type", "veth", "peer", "name", "flap0peer")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "flap0").Run() })
	output(t, "ip", "link", "set", "flap0peer", "up")
	flapped, err := net.InterfaceByName("flap0")
	if err != nil {
		t.Fatal(err)
	}
	events := make(map[int]int) // by interface index
	var mu, pause sync.Mutex
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- links.Watch(ctx, func(ifindex int) {
			pause.Lock()
			defer pause.Unlock()
			mu.Lock()
			defer mu.Unlock()
			events[ifindex]++
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended with %v", err)
		}
	})
	count := func(ifindex int) int {
		mu.Lock()
		defer mu.Unlock()
		return events[ifindex]
	}
	// await waits for an event after a change, which it repeats in case nobody listens yet.
	await := func(what string, ifindex int, change func()) {
		t.Helper()
		before := count(ifindex)
		for deadline := time.Now().Add(patience); count(ifindex) == before; time.Sleep(poll) {
			if time.Now().After(deadline) {
				t.Fatalf("no event of index %d after: %s", ifindex, what)
			}
			change()
		}
	}
	set := func(state string) func() { return func() { output(t, "ip", "link", "set", "flap0", state) } }
	await("set up", flapped.Index, func() { set("down")(); set("up")() })
	for range 20 {
		await("set down", flapped.Index, set("down"))
		await("set up", flapped.Index, set("up"))
	}
	await("flapped while nobody reads", 0, func() {
		pause.Lock()
		defer pause.Unlock()
		batch(t, slices.Repeat([]string{"link set flap0 down", "link set flap0 up"}, 200)...)
	})
	await("removed", flapped.Index, func() { _ = exec.Command("ip", "link", "del", "flap0").Run() })
}
