//go:build vm

package softroce

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

const (
	privilegesFile  = "../../docs/reference/privileges.md"
	privilegesBegin = "<!-- What follows is written by make privileges. -->"
	privilegesEnd   = "<!-- Here ends what make privileges writes. -->"
)

var privilegesPrint = flag.Bool("privileges.print", false, "print the tables for docs/reference/privileges.md instead of comparing them")

// What the exporter finds in each situation is what the documentation says. Programs
// of another user hold objects of the device meanwhile, in a cgroup as Kubernetes makes
// it.
func TestPrivileges(t *testing.T) {
	h := newPrivilegedHost(t)
	all := h.situations(t)
	found := make([]sight, len(all))
	run := func(exclusive bool) func(t *testing.T) {
		return func(t *testing.T) {
			for i, s := range all {
				if s.exclusive != exclusive {
					continue
				}
				t.Run(s.name, func(t *testing.T) {
					if !exclusive {
						t.Parallel()
					}
					found[i] = h.look(t, s)
				})
			}
		}
	}
	t.Run("shared", run(false))
	h.lookAgain(t, all, found)
	t.Run("exclusive", func(t *testing.T) {
		keepDevices(t)
		// No device can be moved, since the driver cannot take contexts away from their
		// programs.
		running.Command(t, "ip", "netns", "add", "elsewhere")
		out, err := exec.Command("rdma", "dev", "set", active, "netns", "elsewhere").CombinedOutput()
		running.Command(t, "ip", "netns", "del", "elsewhere")
		if err == nil || !strings.Contains(string(out), "Operation not supported") {
			t.Errorf("rdma dev set netns: %v, %s", err, out)
		}
		run(true)(t)
	})
	if !t.Failed() {
		compareSights(t, all, found)
	}
}

// lookAgain looks once more into situations in which something else was found than the
// documentation has. Rarely, when many network namespaces come and go, the kernel shows
// no device in one for a while.
func (h *privilegedHost) lookAgain(t *testing.T, all []situation, found []sight) {
	t.Helper()
	if *privilegesPrint || t.Failed() {
		return
	}
	page := running.Must(os.ReadFile(privilegesFile))(t)
	for i, s := range all {
		if row := rowOf(s, found[i]); !s.exclusive && !strings.Contains(string(page), row) {
			t.Logf("not as documented, so it is looked at again: %s", row)
			found[i] = h.look(t, s)
		}
	}
}

// rowOf returns a row of the tables.
func rowOf(s situation, found sight) string {
	return fmt.Sprintf("| %s | %s |\n", s.name, strings.Join(found.cells(), " | "))
}

// keepDevices keeps each device to one network namespace until the end of the test. The
// kernel changes that only while there is no other network namespace, and takes its
// time to remove one.
func keepDevices(t *testing.T) {
	t.Helper()
	mode := func(mode string) {
		t.Helper()
		await(t, "the kernel to take netns "+mode, func() bool {
			return exec.Command("rdma", "system", "set", "netns", mode).Run() == nil
		})
	}
	t.Cleanup(func() { mode("shared") })
	mode("exclusive")
}

// compareSights makes sure that the documentation has what was found.
func compareSights(t *testing.T, all []situation, found []sight) {
	t.Helper()
	var b strings.Builder
	b.WriteString(privilegesBegin + "\n")
	for i, s := range all {
		if i == 0 || s.group != all[i-1].group {
			fmt.Fprintf(&b, "\n### %s\n\n| the exporter | %s |\n|%s\n", s.group, strings.Join(sightColumns(), " | "), strings.Repeat("---|", len(sightColumns())+1))
		}
		b.WriteString(rowOf(s, found[i]))
	}
	b.WriteString("\n" + privilegesEnd + "\n")
	if *privilegesPrint {
		fmt.Print(b.String())
		return
	}
	doc := running.Must(os.ReadFile(privilegesFile))(t)
	if !strings.Contains(string(doc), b.String()) {
		t.Errorf("%s has other tables than\n%s\nIf these are right, run make privileges.", privilegesFile, b.String())
	}
}
