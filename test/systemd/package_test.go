//go:build vm

package systemd

import (
	"os"
	"testing"

	"rdma_exporter/test/running"
)

// What the package does when it is installed, upgraded and removed, without unpacking
// it each time: that takes long on a machine that is emulated in software.
func TestPackage(t *testing.T) {
	script := func(name string, args ...string) {
		t.Helper()
		running.Command(t, "sh", append([]string{"../../deploy/packages/" + name}, args...)...)
	}
	script("postinstall", "configure", "0.1.0")
	if state := property(t, "ActiveState"); state != "inactive" {
		t.Errorf("a service that did not run is %s after an upgrade", state)
	}
	configure(t, quick)
	start(t, service)
	running.Command(t, "systemctl", "enable", service)
	const enabled = "/etc/systemd/system/multi-user.target.wants/" + service
	before := property(t, "MainPID")
	for _, upgrade := range [][]string{{"upgrade", "0.2.0"}, {"1"}} { // of dpkg, of rpm
		script("preremove", upgrade...)
		if after := property(t, "MainPID"); after != before {
			t.Errorf("before an upgrade, %v: the process is %s, before %s", upgrade, after, before)
		}
	}
	script("postinstall", "configure", "0.1.0")
	if state, after := property(t, "ActiveState"), property(t, "MainPID"); state != "active" || after == before {
		t.Errorf("after an upgrade the service is %s, its process %s, before %s", state, after, before)
	}
	if _, err := os.Lstat(enabled); err != nil {
		t.Errorf("after an upgrade the service is not enabled: %v", err)
	}
	script("preremove", "remove")
	if state := property(t, "ActiveState"); state != "inactive" || len(processes(t)) > 0 {
		t.Errorf("before it is removed the service is %s, with the processes %v", state, processes(t))
	}
	if _, err := os.Lstat(enabled); err == nil {
		t.Error("before it is removed the service is enabled")
	}
}
