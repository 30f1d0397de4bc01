//go:build vmhost

// Package install_test installs the exporter with make install below a folder, and
// looks at what is there: files, units, completions. It needs no virtual machine,
// but the programs of systemd, bash, zsh and fish; make test-systemd installs them.
package install_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is where the module's root is.
const repository = "../../.."

// exporter is the program that is installed.
var exporter = os.Getenv("RDMA_EXPORTER_BINARY")

func TestMain(m *testing.M) {
	if !filepath.IsAbs(exporter) {
		fmt.Fprintf(os.Stderr, "RDMA_EXPORTER_BINARY is %q: set it to the absolute path of the built exporter\n", exporter)
		os.Exit(1)
	}
	for _, program := range []string{exporter, analyser, "systemctl", "bash", "zsh", "fish", "make"} {
		if _, err := exec.LookPath(program); err != nil {
			fmt.Fprintf(os.Stderr, "%v; see make test-systemd\n", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// A place is where the exporter is installed.
type place struct {
	dest string
	// vars are given to make, as DESTDIR is.
	vars []string
}

// folder returns a place whose path is unpleasant.
func folder(t *testing.T, vars ...string) place {
	return place{dest: filepath.Join(t.TempDir(), "it's a 'root', with spaces"), vars: vars}
}

// make makes a target, under an umask that lets nobody else read, and without
// capabilities: what root may do beyond what is its own is not needed.
func (p place) make(t *testing.T, target string) (string, error) {
	t.Helper()
	// What is built is not the point here: make takes it as it is.
	args := append([]string{"-c", `umask 077; exec "$@"`, "sh", "make", "-s", "-C", repository, "--old-file=build", target, "DESTDIR=" + p.dest, "exporter=" + exporter}, p.vars...)
	cmd := exec.CommandContext(t.Context(), "sh", args...)
	if os.Geteuid() == 0 {
		cmd = exec.CommandContext(t.Context(), "setpriv", append([]string{"--bounding-set=-all", "--inh-caps=-all", "sh"}, args...)...)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (p place) mustMake(t *testing.T, target string) string {
	t.Helper()
	out, err := p.make(t, target)
	if err != nil {
		t.Fatalf("make %s: %v\n%s", target, err, out)
	}
	return out
}

// files lists what is there, each as mode and path: all but the folders' own
// modes, which have to be 0755.
func (p place) files(t *testing.T) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(p.dest, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, p.dest)
		if !entry.IsDir() {
			list = append(list, fmt.Sprintf("%04o %s", info.Mode().Perm(), name))
		} else if info.Mode().Perm() != 0o755 {
			t.Errorf("the mode of the folder %s is %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (p place) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dest, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (p place) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dest, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
