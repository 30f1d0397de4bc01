//go:build vmhost

package install_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// analyser is the program of systemd that rates units.
const analyser = "systemd-analyze" //nolint:misspell // its name

// analyse runs the analyser on the installed service, with drop-ins.
func analyse(t *testing.T, p place, dropIns []string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	// Its program is where the unit says only on the host.
	unit := strings.ReplaceAll(p.read(t, "usr/lib/systemd/system/rdma_exporter.service"), "/usr/bin/rdma_exporter", exporter)
	copies := map[string]string{
		"rdma_exporter.service": unit,
		"rdma_exporter.socket":  p.read(t, "usr/lib/systemd/system/rdma_exporter.socket"),
	}
	for _, name := range dropIns {
		copies["rdma_exporter.service.d/"+name] = p.read(t, "usr/share/rdma_exporter/examples/"+name)
	}
	for name, text := range copies {
		running.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		running.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	cmd := exec.CommandContext(t.Context(), analyser, args...)
	cmd.Dir = dir
	// With the colon at the end the units of this machine are found as well.
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

func TestVerify(t *testing.T) {
	p := installed(t)
	all := []string{"addresses.conf", "group.conf", "raw-packet.conf", "tls.conf"}
	examples, err := filepath.Glob(filepath.Join(repository, "deploy/systemd/examples/*.conf"))
	if err != nil || len(examples) != len(all)+1 { // rdma-group.conf is for sysusers.d
		t.Errorf("there are other drop-ins than are tried here: %v %v", examples, err)
	}
	for _, dropIns := range [][]string{nil, all} {
		// What it does not know, or cannot use, it says on standard error.
		if said := analyse(t, p, dropIns, "verify", "--man=no", "./rdma_exporter.service", "./rdma_exporter.socket"); said != "" {
			t.Errorf("with %v:\n%s", dropIns, said)
		}
	}
}

// The figures are what systemd 252 says, 0 is best and 10 worst. What is loose has its
// reason in docs/systemd.md, which has the figures, too.
func TestExposure(t *testing.T) {
	p := installed(t)
	p.write(t, "usr/share/rdma_exporter/examples/root-users.conf", "[Service]\nPrivateUsers=no\n")
	says := regexp.MustCompile(`Overall exposure level for rdma_exporter.service: ([0-9.]+)`)
	for _, c := range []struct {
		dropIns []string
		most    float64
	}{
		{nil, 1.6},
		{[]string{"addresses.conf"}, 1.5},
		{[]string{"root-users.conf"}, 1.7},
		{[]string{"raw-packet.conf"}, 1.9},
	} {
		said := analyse(t, p, c.dropIns, "security", "--offline=true", "--no-pager", "./rdma_exporter.service")
		figure := says.FindStringSubmatch(said)
		if figure == nil {
			t.Fatalf("with %v, no figure:\n%s", c.dropIns, said)
		}
		t.Logf("with %v: %s", c.dropIns, figure[0])
		level := running.Must(strconv.ParseFloat(figure[1], 64))(t)
		if c.dropIns == nil {
			for line := range strings.Lines(said) {
				if strings.HasPrefix(line, "✗") || strings.HasPrefix(line, "→") {
					t.Log(strings.Join(strings.Fields(line), " "))
				}
			}
		}
		if level > c.most {
			t.Errorf("with %v the exposure level is %v, above %v:\n%s", c.dropIns, level, c.most, said)
		}
	}
}

// The units can be enabled where they were installed.
func TestEnable(t *testing.T) {
	p := installed(t)
	cmd := exec.CommandContext(t.Context(), "systemctl", "--root="+p.dest, "enable", "rdma_exporter.service", "rdma_exporter.socket")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("systemctl enable: %v\n%s", err, out)
	}
	for link, target := range map[string]string{
		"multi-user.target.wants/rdma_exporter.service": "/usr/lib/systemd/system/rdma_exporter.service",
		"sockets.target.wants/rdma_exporter.socket":     "/usr/lib/systemd/system/rdma_exporter.socket",
	} {
		if got, err := os.Readlink(filepath.Join(p.dest, "etc/systemd/system", link)); err != nil || got != target {
			t.Errorf("%s is %q, want %q (%v)", link, got, target, err)
		}
	}
}
