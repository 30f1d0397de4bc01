//go:build vm

package softroce

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// freezer makes processes that do not even die of SIGKILL: those in a frozen
// cgroup of version 1.
type freezer struct {
	t     *testing.T
	group string
}

func newFreezer(t *testing.T) *freezer {
	t.Helper()
	root := t.TempDir()
	running.Command(t, "mount", "-t", "cgroup", "-o", "freezer", "none", root)
	t.Cleanup(func() { running.Command(t, "umount", root) })
	f := &freezer{t: t, group: filepath.Join(root, "frozen")}
	running.Check(t, os.Mkdir(f.group, 0o755))
	t.Cleanup(func() {
		f.thaw()
		await(t, "the cgroup to be empty", func() bool { return os.Remove(f.group) == nil })
	})
	return f
}

func (f *freezer) write(file, text string) {
	f.t.Helper()
	running.Check(f.t, os.WriteFile(filepath.Join(f.group, file), []byte(text), 0o644))
}

// freeze freezes a process.
func (f *freezer) freeze(pid int) {
	f.t.Helper()
	f.write("cgroup.procs", strconv.Itoa(pid))
	f.write("freezer.state", "FROZEN")
	await(f.t, "the process to be frozen", func() bool {
		state, _ := os.ReadFile(filepath.Join(f.group, "freezer.state"))
		return strings.TrimSpace(string(state)) == "FROZEN"
	})
}

func (f *freezer) thaw() {
	f.t.Helper()
	f.write("freezer.state", "THAWED")
}

// A child that cannot be killed costs its device further runs until it has ended,
// and nobody else anything.
func TestStuckChild(t *testing.T) {
	f := newFreezer(t)
	flags := hurried(t)

	t.Run("until it ends", func(t *testing.T) {
		e := start(t, options{flags: flags})
		t.Cleanup(f.thaw)
		e.rounds(1)
		c, verb := e.stopInVerb(active)
		f.freeze(c.pid)

		m := e.until(active+" to be stuck", func(m metrics) bool {
			return len(m.find("rdma_probe_stuck", "device", active, "verb", "")) == 0 && m.sum("rdma_probe_stuck", "device", active) == 1
		})
		attributed(t, m, active, verb)
		if verb != "" {
			m.is(t, 1, "rdma_probe_stuck", "device", active, "verb", verb)
		}
		m.is(t, 0, "rdma_probe_stuck", "device", down, "verb", "")
		if !isAlive(c.pid) {
			t.Fatalf("child %d is not stuck: it has ended", c.pid)
		}

		// rxe1 is probed, rxe0 is not: the stuck child stays its only one.
		ran := m.runs(active)
		want := m.runs(down, "ok") + 3
		m = e.until("3 more runs on "+down, func(m metrics) bool {
			for _, other := range children(t, e.pid()) {
				if other.device == active && other.pid != c.pid {
					t.Errorf("child %d probes %s beside the stuck one", other.pid, active)
				}
			}
			return m.runs(down, "ok") >= want
		})
		if m.runs(active) != ran {
			t.Errorf("%v runs on %s, which had %v when it became stuck", m.runs(active), active, ran)
		}
		m.allOK(t, down)
		if m.sum("rdma_probe_stuck", "device", active) != 1 || !isAlive(c.pid) {
			t.Errorf("%s is not stuck any more", active)
		}

		f.thaw()
		began := time.Now()
		await(t, "the child to end", func() bool { return !isAlive(c.pid) })
		m = e.until("a run on "+active, func(m metrics) bool {
			return m.sum("rdma_probe_stuck", "device", active) == 0 && m.runs(active, "ok") > ran-1
		})
		t.Logf("%s was probed again %v after its child was thawed", active, time.Since(began))
		m.is(t, 0, "rdma_probe_stuck", "device", active, "verb", "")
		e.terminate()
		for _, message := range []string{"does not end", "has ended"} {
			if n := strings.Count(e.log.String(), message); n != 1 {
				t.Errorf("the log says %q %d times, want once", message, n)
			}
		}
		t.Logf("the log:\n%s", e.log)
	})

	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprintf("SIGTERM, known to be stuck %v", known), func(t *testing.T) {
			before := resources(t)
			e := start(t, options{flags: flags})
			t.Cleanup(f.thaw)
			e.rounds(1)
			c, verb := e.stopHolding(active, before)
			f.freeze(c.pid)
			if known {
				e.until(active+" to be stuck", func(m metrics) bool { return m.sum("rdma_probe_stuck", "device", active) == 1 })
			}
			t.Logf("ended %v after SIGTERM, with a child frozen in %q", e.terminate(), verb)
			if !isAlive(c.pid) {
				t.Errorf("child %d is not stuck: it has ended", c.pid)
			}
			f.thaw()
			await(t, "the child to end", func() bool { return !isAlive(c.pid) })
			awaitResources(t, before)
		})
	}
}
