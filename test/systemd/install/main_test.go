//go:build vmhost

// Package install_test installs the packages below a folder, and looks at what is
// there: files, units, completions, the manual page. It needs no virtual machine, but
// dpkg, rpm, mandoc, and the programs of systemd, bash, zsh and fish; make test-systemd
// installs them.
package install_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// repository is where the module's root is.
const repository = "../../.."

// exporter is the program that is packaged, and deb and rpm are the packages.
var exporter, deb, rpm string

func TestMain(m *testing.M) {
	if err := provide(); err != nil {
		fmt.Fprintf(os.Stderr, "%v; see make test-systemd\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// provide finds the packages, and the programs that the tests need.
func provide() error {
	exporter = os.Getenv("RDMA_EXPORTER_BINARY")
	for kind, file := range map[string]*string{"deb": &deb, "rpm": &rpm} {
		found, err := filepath.Glob(filepath.Join(os.Getenv("RDMA_PACKAGES"), "*."+kind))
		if err != nil || len(found) != 1 || !filepath.IsAbs(found[0]) {
			return fmt.Errorf("RDMA_PACKAGES has to be the absolute path of a folder with one %s: %v %w", kind, found, err)
		}
		*file = found[0]
	}
	for _, program := range []string{exporter, analyser, "systemctl", "bash", "zsh", "fish", "mandoc", "dpkg", "dpkg-deb", "rpm"} {
		if _, err := exec.LookPath(program); err != nil {
			return err
		}
	}
	return nil
}

// A place is where the exporter is installed.
type place struct {
	dest string
	// database is where dpkg or rpm keeps what it has installed.
	database string
}

// folder returns a place whose path is unpleasant.
func folder(t *testing.T) place {
	t.Helper()
	p := place{dest: filepath.Join(t.TempDir(), "it's a 'root', with spaces"), database: t.TempDir()}
	for _, dir := range []string{p.dest, filepath.Join(p.database, "info"), filepath.Join(p.database, "updates")} {
		running.Check(t, os.MkdirAll(dir, 0o755))
	}
	running.Check(t, os.WriteFile(filepath.Join(p.database, "status"), nil, 0o644))
	return p
}

// installed returns a place in which the deb is installed.
func installed(t *testing.T) place {
	t.Helper()
	p := folder(t)
	p.dpkg(t, "--install", deb)
	return p
}

// dpkg runs dpkg in the place, where there is nothing else and where questions are
// answered as by default. It has no capabilities: what root may do beyond what is its
// own is not needed.
func (p place) dpkg(t *testing.T, args ...string) {
	t.Helper()
	args = append([]string{
		"dpkg", "--root=" + p.dest, "--admindir=" + p.database, "--log=/dev/null", "--force-not-root", "--force-script-chrootless",
		"--force-depends", "--force-confdef", "--force-confold",
	}, args...)
	if os.Geteuid() == 0 {
		args = append([]string{"setpriv", "--bounding-set=-all", "--inh-caps=-all"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	output(t, cmd)
}

// files lists the files, each as mode and path. Directories must have mode 0755.
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
	running.Check(t, err)
	slices.Sort(list)
	return list
}

func (p place) read(t *testing.T, name string) string {
	t.Helper()
	b := running.Must(os.ReadFile(filepath.Join(p.dest, name)))(t)
	return string(b)
}

func (p place) write(t *testing.T, name, text string) {
	t.Helper()
	running.Check(t, os.WriteFile(filepath.Join(p.dest, name), []byte(text), 0o644))
}
