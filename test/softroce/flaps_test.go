//go:build vm

package softroce

import (
	"os/exec"
	"slices"
	"testing"

	"rdma_exporter/test/running"
)

// TestFlaps: a port whose network device flaps between two scrapes has changed as often, each
// change counted once, whether it is told by events, by counts of the kernel or by readings;
// and a restart keeps that.
func TestFlaps(t *testing.T) { flapsOf(t, "rxe") }

func flapsOf(t *testing.T, driver string) {
	t.Helper()
	const flaps = 20
	running.Command(t, "ip", "link", "add", "flapping", "type", "veth", "peer", "name", "flappingpeer")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "flapping").Run() })
	running.Command(t, "ip", "link", "set", "flappingpeer", "up")
	running.Command(t, "ip", "link", "set", "flapping", "up")
	running.Command(t, "rdma", "link", "add", "flaps", "type", driver, "netdev", "flapping")
	t.Cleanup(func() { running.Command(t, "rdma", "link", "del", "flaps") })
	o := options{flags: []string{"--state.dir=" + t.TempDir(), "--device.include=flaps", "--hardware.interval=1s", "--probe.interval=1h"}}
	e := start(t, o)

	// changed waits until a scrape has so many changes of each kind, and makes sure that two
	// readings later there are no more.
	changed := func(what string, downs, ups float64) {
		t.Helper()
		count := func() (float64, float64, float64) {
			m := e.scrape()
			return m.sum("rdma_port_state_changes_total", "device", "flaps", "to", "down"),
				m.sum("rdma_port_state_changes_total", "device", "flaps", "to", "active"),
				m.sum("rdma_hardware_runs_total", "device", "flaps", "outcome", "ok")
		}
		settled, until := false, 0.0
		awaitEvery(t, scrapePoll, longestPoll, what, func() bool {
			d, u, runs := count()
			if !settled && d >= downs && u >= ups {
				settled, until = true, runs+2
			}
			return settled && runs >= until
		})
		if d, u, _ := count(); d != downs || u != ups {
			t.Errorf("%s: %v downs and %v ups, want %v and %v", what, d, u, downs, ups)
		}
	}
	changed("nothing has changed", 0, 0)
	for range flaps {
		running.Command(t, "ip", "link", "set", "flapping", "down")
		running.Command(t, "ip", "link", "set", "flapping", "up")
	}
	changed("it was set down and up", flaps, flaps)
	batch(t, slices.Repeat([]string{"link set flappingpeer down", "link set flappingpeer up"}, flaps)...)
	changed("its carrier went and came at once", 2*flaps, 2*flaps)
	running.Command(t, "ip", "link", "set", "flapping", "down")
	changed("it is down", 2*flaps+1, 2*flaps)
	e.terminate()

	running.Command(t, "ip", "link", "set", "flapping", "up")
	e = start(t, o)
	changed("it came up while nobody looked", 2*flaps+1, 2*flaps+1)
	e.terminate()
}
