//go:build image

package image

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

const (
	// maxSize and maxCompressed are what the layers of the image may have, in bytes.
	maxSize       = 32 << 20
	maxCompressed = 12 << 20
)

// version is that of the repository.
func version(t *testing.T) string {
	t.Helper()
	text := running.Must(os.ReadFile(filepath.Join("..", "..", "VERSION")))(t)
	return strings.TrimSpace(string(text))
}

// compressed returns how many bytes a layer has when it is shipped.
func compressed(t *testing.T, layer []byte) int {
	t.Helper()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	running.Must(w.Write(layer))(t)
	running.Check(t, w.Close())
	return zipped.Len()
}

func TestImageConfiguration(t *testing.T) {
	a := read(t)
	if len(a.layers) != 1 {
		t.Fatalf("it has %d layers", len(a.layers))
	}
	size, zipped := len(a.layers[0]), compressed(t, a.layers[0])
	t.Logf("configuration %d bytes, layer %d bytes, %d with gzip", len(a.raw), size, zipped)
	if size > maxSize || zipped > maxCompressed {
		t.Errorf("the layer has grown beyond %d bytes, or %d with gzip", maxSize, maxCompressed)
	}
	if want := "localhost/rdma_exporter:" + version(t); !slices.Equal(a.manifest.RepoTags, []string{want}) {
		t.Errorf("its names are %q, want %q", a.manifest.RepoTags, want)
	}
	revision := a.Config.Labels["org.opencontainers.image.revision"]
	if revision != "unknown" && !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(revision) {
		t.Errorf("its revision is %q", revision)
	}
	var want configuration
	want.Config.User = "10879:10879"
	want.Config.ExposedPorts = map[string]struct{}{"10879/tcp": {}}
	want.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	want.Config.Cmd = []string{}
	want.Config.Entrypoint = []string{"/usr/bin/rdma_exporter"}
	want.Config.Volumes = map[string]struct{}{}
	want.Config.Labels = map[string]string{
		"org.opencontainers.image.title":       "rdma_exporter",
		"org.opencontainers.image.description": "Prometheus exporter and resource auditor for RDMA devices",
		"org.opencontainers.image.version":     version(t),
		"org.opencontainers.image.revision":    revision,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "",
	}
	want.Config.Healthcheck.Test = []string{"CMD", "/usr/bin/rdma_exporter", "healthcheck"}
	want.Config.Healthcheck.Interval, want.Config.Healthcheck.Timeout, want.Config.Healthcheck.StartPeriod = 30*time.Second, 10*time.Second, 10*time.Second
	if !reflect.DeepEqual(a.Config, want.Config) {
		got, _ := json.MarshalIndent(a.Config, "", "  ")
		t.Errorf("its configuration is %s", got)
	}
	// What the build was given to fetch modules with stays behind.
	for _, secret := range []string{"PROXY", "proxy", "modules", "/root"} {
		if strings.Contains(string(a.raw), secret) {
			t.Errorf("its configuration or history has %q: %s", secret, a.raw)
		}
	}
}

// The packages that files of the image are from, by name: versions change with Debian.
func TestImagePackages(t *testing.T) {
	root := built(t, "rootfs")
	entries := running.Must(os.ReadDir(filepath.Join(root, "var/lib/dpkg/status.d")))(t)
	var names strings.Builder
	for _, e := range entries {
		names.WriteString(e.Name() + "\n")
		text := running.Must(os.ReadFile(filepath.Join(root, "var/lib/dpkg/status.d", e.Name())))(t)
		for _, field := range []string{"Package: " + e.Name(), "Status: install ok installed", "Architecture: ", "Version: "} {
			if !strings.Contains("\n"+string(text), "\n"+field) {
				t.Errorf("what a scanner reads of %s has no %q:\n%s", e.Name(), field, text)
			}
		}
		if info, err := os.Stat(filepath.Join(root, "usr/share/doc", e.Name(), "copyright")); err != nil || info.Size() == 0 {
			t.Errorf("%s has no licence: %v", e.Name(), err)
		}
	}
	golden.Check(t, filepath.Join("testdata", "packages"), names.String())
}

// There is one program, one loader, and libraries. No user may write, and no file changes its user.
func TestImageFiles(t *testing.T) {
	root := built(t, "rootfs")
	var programs []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, root)
		mode := info.Mode()
		if mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 || mode.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0 || mode.Type() != fs.ModeSymlink && mode&0o022 != 0 && name != "/tmp" {
			t.Errorf("%s: %v", name, mode)
		}
		switch {
		case mode.Type() == fs.ModeSymlink:
			// Within the image: what is outside is another file's in each container.
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			if filepath.IsAbs(target) {
				path = filepath.Join(root, target)
			}
			if to, err := filepath.EvalSymlinks(path); err != nil || !strings.HasPrefix(to, root+"/") {
				t.Errorf("%s leads to %q, outside of the image (%v)", name, target, err)
			}
		case mode.IsRegular():
			f, err := elf.Open(path)
			if err == nil {
				_ = f.Close()
			}
			library := strings.HasPrefix(name, "/usr/lib/") && strings.Contains(filepath.Base(name), ".so")
			if (err == nil || mode&0o111 != 0) && !library {
				programs = append(programs, name)
			}
		}
		return nil
	})
	running.Check(t, err)
	if !slices.Equal(programs, []string{"/usr/bin/rdma_exporter"}) {
		t.Errorf("the programs are %q", programs)
	}
}

// The licences of what was compiled into the program are there.
func TestImageLicences(t *testing.T) {
	root := built(t, "rootfs")
	text := running.Must(exec.Command("go", "version", "-m", filepath.Join(root, "usr/bin/rdma_exporter")).Output())(t)
	doc := filepath.Join(root, "usr/share/doc/rdma_exporter")
	folders := []string{doc, filepath.Join(doc, "go")}
	for _, m := range regexp.MustCompile(`(?m)^\tdep\t(\S+)\t`).FindAllSubmatch(text, -1) {
		folders = append(folders, filepath.Join(doc, "modules", string(m[1])))
	}
	if len(folders) < 10 {
		t.Errorf("there are no modules in it:\n%s", text)
	}
	for _, folder := range folders {
		files, _ := filepath.Glob(filepath.Join(folder, "[LC][IO][CP]*"))
		if len(files) == 0 {
			t.Errorf("there is no licence in %s", strings.TrimPrefix(folder, root))
		}
	}
}

// Every provider that a driver file names is there, with all libraries that it needs.
func TestImageProviders(t *testing.T) {
	root := built(t, "rootfs")
	drivers := running.Must(filepath.Glob(filepath.Join(root, "etc/libibverbs.d/*.driver")))(t)
	if len(drivers) < 10 {
		t.Errorf("there are only %d", len(drivers))
	}
	for _, driver := range drivers {
		text := running.Must(os.ReadFile(driver))(t)
		name := strings.TrimSpace(strings.TrimPrefix(string(text), "driver "))
		files, _ := filepath.Glob(filepath.Join(root, "usr/lib/*/libibverbs/lib"+name+"-rdmav*.so"))
		if len(files) != 1 {
			t.Errorf("%s: %q", name, files)
			continue
		}
		// The loader of the image, in the image, as libibverbs would.
		out, err := exec.Command("chroot", root, "/lib64/ld-linux-x86-64.so.2", "--list", strings.TrimPrefix(files[0], root)).CombinedOutput()
		if err != nil || strings.Contains(string(out), "not found") {
			t.Errorf("%s cannot be loaded: %v\n%s", name, err, out)
		}
	}
}
