//go:build vm

package systemd

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// Where only a group may use the devices, the exporter needs to be in it.
func TestGroup(t *testing.T) {
	sysusers := "/etc/sysusers.d/rdma-group.conf"
	write(t, sysusers, example(t, "rdma-group.conf"))
	running.Command(t, "systemd-sysusers", sysusers)
	write(t, "/etc/udev/rules.d/99-rdma.rules", example(t, "rdma.rules"))
	gid := strings.Split(running.Command(t, "getent", "group", "rdma"), ":")[2]
	// udev says what it would do, and that is done.
	said := running.Command(t, "udevadm", "test", "/sys/class/infiniband_verbs/uverbs0")
	if !strings.Contains(said, "GROUP "+gid) || !strings.Contains(said, "MODE 0660") {
		t.Fatalf("no group and mode of the rule:\n%s", said)
	}
	nodes, err := filepath.Glob("/dev/infiniband/uverbs*")
	if err != nil || len(nodes) == 0 {
		t.Fatalf("no nodes: %v", err)
	}
	number := running.Must(strconv.Atoi(gid))(t)
	for _, node := range nodes {
		set := func(gid int, mode os.FileMode) {
			running.Check(t, os.Chown(node, 0, gid))
			running.Check(t, os.Chmod(node, mode))
		}
		t.Cleanup(func() { set(0, 0o666) })
		set(number, 0o660)
	}
	t.Run("without", func(t *testing.T) {
		configure(t, quick)
		start(t, service)
		if s := done(t, active); s[`rdma_verbs_errors_total{device="rxe0",errno="EACCES",verb="ibv_open_device"}`] == 0 {
			t.Errorf("the device was opened: %v", s.of("rdma_verbs_errors_total"))
		}
	})
	t.Run("with", func(t *testing.T) {
		configure(t, quick)
		dropIn(t, "group.conf", example(t, "group.conf"))
		start(t, service)
		done(t, active).ok(t, active)
	})
}

// With the capability it is not for want of a right that raw packet queue pairs are
// skipped: Soft-RoCE has none.
func TestRawPacket(t *testing.T) {
	configure(t, quick)
	dropIn(t, "raw-packet.conf", example(t, "raw-packet.conf"))
	start(t, service)
	s := done(t, active)
	s.ok(t, active)
	if n := len(s.of("rdma_probe_skipped", `subject="raw_packet"`, `reason="not_supported"`)); n != 1 {
		t.Errorf("skipped: %v", s.of("rdma_probe_skipped"))
	}
	const netRaw = `0+2000`
	matches(t, "/proc/"+property(t, "MainPID")+"/status", `CapEff:\t`+netRaw, `CapBnd:\t`+netRaw)
}

// Files that only root can read are handed over.
func TestTLS(t *testing.T) {
	dir := "/etc/rdma_exporter"
	running.Check(t, os.MkdirAll(dir, 0o700))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	running.Command(t, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
		"-subj", "/CN=localhost", "-keyout", dir+"/tls.key", "-out", dir+"/tls.crt")
	write(t, dir+"/web.yaml", "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n")
	for _, name := range []string{"tls.key", "web.yaml"} {
		running.Check(t, os.Chmod(filepath.Join(dir, name), 0o600))
	}
	configure(t, quick+" --web.config.file=/run/credentials/rdma_exporter.service/web.yaml")
	dropIn(t, "tls.conf", example(t, "tls.conf"))
	start(t, service)
	await(t, "the exporter to serve", func() bool {
		_, err := get("https://" + address + "/-/healthy")
		return err == nil
	})
	if _, err := get("http://" + address + "/-/healthy"); err == nil {
		t.Error("it serves without TLS, too")
	}
}

func TestAddresses(t *testing.T) {
	configure(t, quick)
	dropIn(t, "addresses.conf", example(t, "addresses.conf"))
	start(t, service)
	await(t, "the exporter to serve", func() bool {
		_, err := get("http://" + address + "/-/healthy")
		return err == nil
	})
	// The machine's own address on its other interface is not among those.
	if out, err := curl("http://10.0.2.15:10879/-/healthy"); err == nil {
		t.Errorf("an address that is not allowed was served: %s", out)
	}
	dropIn(t, "addresses.conf", strings.Replace(example(t, "addresses.conf"), "192.0.2.0/24", "10.0.2.0/24", 1))
	running.Command(t, "systemctl", "restart", service)
	await(t, "an address that is allowed to be served", func() bool {
		_, err := curl("http://10.0.2.15:10879/-/healthy")
		return err == nil
	})
}
