//go:build release

// Package release_test looks at the files of a release, as make release made them: what
// is in them, whether the deb can be installed, upgraded and removed in a root of its
// own, and whether the arm64 program works. It needs root, mmdebstrap, rpm and mandoc.
package release_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// repository is where the module's root is.
const repository = "../.."

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

var rpms = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// setting returns a variable of the environment, which make test-release sets.
func setting(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if !filepath.IsAbs(value) {
		t.Fatalf("%s is %q and has to be an absolute path; see make test-release", name, value)
	}
	return value
}

// file returns the path of a file of the release.
func file(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(setting(t, "RDMA_RELEASE"), name)
}

func version(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(read(t, filepath.Join(repository, "VERSION")))
}

func deb(t *testing.T, arch string) string {
	t.Helper()
	return file(t, "rdma-exporter_"+version(t)+"_"+arch+".deb")
}

func rpm(t *testing.T, arch string) string {
	t.Helper()
	return file(t, "rdma-exporter-"+version(t)+"-1."+rpms[arch]+".rpm")
}

func tarball(t *testing.T, arch string) string {
	t.Helper()
	return file(t, "rdma_exporter-"+version(t)+".linux-"+arch+".tar.gz")
}

func chart(t *testing.T) string {
	t.Helper()
	return file(t, "rdma-exporter-"+version(t)+".tgz")
}

func read(t *testing.T, name string) string {
	t.Helper()
	b := running.Must(os.ReadFile(name))(t)
	return string(b)
}

func TestFilesAndChecksums(t *testing.T) {
	want := []string{filepath.Base(chart(t)), "SHA256SUMS", "rdma_exporter-" + version(t) + ".linux-amd64.oci.tar"}
	for arch := range machines {
		want = append(want, filepath.Base(deb(t, arch)), filepath.Base(rpm(t, arch)), filepath.Base(tarball(t, arch)),
			"rdma_exporter-"+version(t)+".linux-"+arch+".cdx.json")
	}
	slices.Sort(want)
	entries := running.Must(os.ReadDir(file(t, "")))(t)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
		info := running.Must(e.Info())(t)
		t.Logf("%9d %s", info.Size(), e.Name())
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the files are %v, want %v", got, want)
	}
	sums := make(map[string]string)
	for line := range strings.Lines(read(t, file(t, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	for _, name := range want {
		if name == "SHA256SUMS" {
			continue
		}
		if sum := sha256.Sum256([]byte(read(t, file(t, name)))); sums[name] != hex.EncodeToString(sum[:]) {
			t.Errorf("the checksum of %s is %x, and SHA256SUMS says %q", name, sum, sums[name])
		}
	}
	if len(sums) != len(want)-1 {
		t.Errorf("SHA256SUMS has %d files, want %d", len(sums), len(want)-1)
	}
}

// unpacked returns the files of an archive, and how each is there. What an archive must not
// tell is an error: who made it, and where.
func unpacked(t *testing.T, archive string) (files map[string][]byte, modes []string) {
	t.Helper()
	in := running.Must(os.Open(archive))(t)
	defer func() { _ = in.Close() }()
	zipped := running.Must(gzip.NewReader(in))(t)
	files = make(map[string][]byte)
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, modes
		}
		running.Check(t, err)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || strings.HasPrefix(h.Name, "/") || h.Mode&0o022 != 0 {
			t.Errorf("%s: %s of %d:%d (%q) with mode %o", archive, h.Name, h.Uid, h.Gid, h.Uname, h.Mode)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = running.Must(io.ReadAll(r))(t)
			modes = append(modes, fmt.Sprintf("%04o %s", h.Mode, h.Name))
		}
	}
}

func TestTarballs(t *testing.T) {
	lists := make(map[string][]string)
	for arch, machine := range machines {
		folder := "rdma_exporter-" + version(t) + ".linux-" + arch + "/"
		files, modes := unpacked(t, tarball(t, arch))
		for _, m := range modes {
			lists[arch] = append(lists[arch], strings.Replace(m, folder, "", 1))
		}
		for _, want := range []string{
			"0755 rdma_exporter", "0644 LICENSE", "0644 README.md", "0644 rdma_exporter.1", "0644 docs/reference/metrics.md", "0644 docs/reference/counters.md",
			"0644 completions/rdma_exporter.zsh", "0644 systemd/rdma_exporter.service", "0755 slurm/rdma-healthcheck", "0644 npd/rdma.json", "0644 alerts/alerts.yaml", "0644 dashboards/rdma-fleet.json",
		} {
			if !slices.Contains(lists[arch], want) {
				t.Errorf("%s lacks %q: %v", arch, want, lists[arch])
			}
		}
		program := running.Must(elf.NewFile(bytes.NewReader(files[folder+"rdma_exporter"])))(t)
		if libraries, err := program.ImportedLibraries(); err != nil || program.Machine != machine || !slices.Contains(libraries, "libibverbs.so.1") {
			t.Errorf("the program for %s is of %v and needs %v (%v)", arch, program.Machine, libraries, err)
		}
		if bytes.Contains(files[folder+"rdma_exporter"], []byte(filepath.Dir(filepath.Dir(setting(t, "RDMA_RELEASE"))))) {
			t.Errorf("the program for %s has the path of the folder it was built in", arch)
		}
		if arch == "amd64" {
			page := filepath.Join(t.TempDir(), "rdma_exporter.1")
			running.Check(t, os.WriteFile(page, files[folder+"rdma_exporter.1"], 0o644))
			// Bold letters are struck twice.
			if said := regexp.MustCompile(".\b").ReplaceAllString(running.Command(t, "mandoc", "-T", "utf8", page), ""); !strings.Contains(said, "probe.interval") {
				t.Errorf("the manual page is\n%s", said)
			}
		}
	}
	if !slices.Equal(lists["amd64"], lists["arm64"]) {
		t.Errorf("the tarballs differ:\n%v\n%v", lists["amd64"], lists["arm64"])
	}
}

// TestPackages: both architectures and both kinds have the same files, save for where zsh
// looks. What they are is seen in test/systemd/install.
func TestPackages(t *testing.T) {
	lists := make(map[string][]string)
	for arch := range machines {
		if got := running.Command(t, "dpkg-deb", "--show", "--showformat", "${Package} ${Version} ${Architecture} ${Depends}", deb(t, arch)); !strings.HasPrefix(got, "rdma-exporter "+version(t)+" "+arch+" libc6 (>= 2.") {
			t.Errorf("the deb is %s", got)
		}
		if got, want := running.Command(t, "rpm", "-qp", "--qf", "%{NAME} %{VERSION} %{ARCH} %{BUILDHOST}", rpm(t, arch)), "rdma-exporter "+version(t)+" "+rpms[arch]+" localhost"; got != want {
			t.Errorf("the rpm is %q, want %q", got, want)
		}
		for line := range strings.Lines(running.Command(t, "dpkg-deb", "--contents", deb(t, arch))) {
			if fields := strings.Fields(line); !strings.HasSuffix(line, "/\n") {
				lists["deb "+arch] = append(lists["deb "+arch], strings.TrimPrefix(fields[5], "."))
			}
		}
		for line := range strings.Lines(running.Command(t, "rpm", "-qp", "--qf", `[%{FILEMODES:octal} %{FILENAMES}\n]`, rpm(t, arch))) {
			// All but folders.
			if mode, name, _ := strings.Cut(strings.TrimSpace(line), " "); !strings.HasPrefix(mode, "4") && !strings.HasPrefix(mode, "04") {
				lists["rpm "+arch] = append(lists["rpm "+arch], strings.Replace(name, "site-functions", "vendor-completions", 1))
			}
		}
	}
	for name, list := range lists {
		slices.Sort(list)
		if want := lists["deb amd64"]; !slices.Equal(list, want) || len(list) < 30 {
			t.Errorf("%s has\n%s\nwhere the deb of amd64 has\n%s", name, strings.Join(list, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestInstall upgrades the version before to this one in a root of Debian, and removes it.
func TestInstall(t *testing.T) {
	before, err := filepath.Glob(filepath.Join(setting(t, "RDMA_RELEASE_BEFORE"), "*_amd64.deb"))
	if err != nil || len(before) != 1 {
		t.Fatalf("the deb of the version before: %v %v", before, err)
	}
	root := filepath.Join(t.TempDir(), "root")
	running.Command(t, "mmdebstrap", "--quiet", "--variant=minbase", "--include=libibverbs1,ibverbs-providers", suite(t), root)
	inside := func(args ...string) string {
		t.Helper()
		return running.Command(t, "chroot", append([]string{root, "env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}, args...)...)
	}
	install := func(deb string) string {
		t.Helper()
		running.Check(t, os.WriteFile(filepath.Join(root, "new.deb"), []byte(read(t, deb)), 0o644))
		inside("dpkg", "--install", "/new.deb")
		running.Check(t, os.Remove(filepath.Join(root, "new.deb")))
		return inside("dpkg-query", "--show", "--showformat", "${Status} ${Version}", "rdma-exporter")
	}
	untouched := inside("find", "/usr", "/etc", "-not", "-name", "*ld.so.cache")

	first := install(before[0])
	if !strings.HasPrefix(first, "install ok installed ") || strings.HasSuffix(first, " "+version(t)) {
		t.Errorf("the version before is %q", first)
	}
	const edited = "ARGS=--log.level=debug\n"
	settings := filepath.Join(root, "etc/default/rdma_exporter")
	running.Check(t, os.WriteFile(settings, []byte(edited), 0o644))
	if got := install(deb(t, "amd64")); got != "install ok installed "+version(t) {
		t.Errorf("after the upgrade it is %q", got)
	}
	if got := read(t, settings); got != edited {
		t.Errorf("the upgrade made %q of what was edited", got)
	}
	if got := inside("rdma_exporter", "--version"); !strings.Contains(got, "version "+version(t)+" (branch: v"+version(t)) {
		t.Errorf("the program says %q", got)
	}
	// Its children find themselves by way of /proc.
	running.Command(t, "mount", "--bind", "/proc", filepath.Join(root, "proc"))
	said, err := exec.CommandContext(t.Context(), "chroot", root, "/usr/bin/rdma_exporter", "audit", "--provider=simulated", "--brief").CombinedOutput()
	running.Command(t, "umount", filepath.Join(root, "proc"))
	if err != nil || !strings.Contains(string(said), "Verdict: OK") {
		t.Errorf("the audit of simulated devices: %v\n%s", err, said)
	}

	inside("dpkg", "--remove", "rdma-exporter")
	if got := read(t, settings); got != edited {
		t.Errorf("when it was removed, %q was left of what was edited", got)
	}
	inside("dpkg", "--purge", "rdma-exporter")
	if now := inside("find", "/usr", "/etc", "-not", "-name", "*ld.so.cache"); now != untouched {
		t.Errorf("it left something, or took it along:\n%s", difference(untouched, now))
	}
}

// difference lists the lines that only one of two texts has.
func difference(a, b string) string {
	var list []string
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		other := strings.Split(pair[1], "\n")
		for _, line := range strings.Split(pair[0], "\n") {
			if !slices.Contains(other, line) {
				list = append(list, line)
			}
		}
	}
	return strings.Join(list, "\n")
}

// suite is the release of Debian of this machine, whose C library the program needs.
func suite(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(read(t, "/etc/os-release")) {
		if name, ok := strings.CutPrefix(line, "VERSION_CODENAME="); ok {
			return strings.TrimSpace(name)
		}
	}
	t.Fatal("/etc/os-release does not say which release of Debian this is")
	return ""
}

// TestArm64 runs the program of the deb in an emulation.
func TestArm64(t *testing.T) {
	emulator := setting(t, "RDMA_EMULATOR")
	root := filepath.Join(t.TempDir(), "root")
	running.Command(t, "cp", "-a", setting(t, "RDMA_SYSROOT"), root)
	running.Command(t, "dpkg-deb", "--extract", deb(t, "arm64"), root)
	if got := running.Command(t, filepath.Join(emulator, "usr/bin/qemu-aarch64-static"), "-L", root, filepath.Join(root, "usr/bin/rdma_exporter"), "--version"); !strings.Contains(got, "version "+version(t)) || !strings.Contains(got, "linux/arm64") {
		t.Errorf("it says %q", got)
	} else {
		t.Log(got)
	}
	// PRoot sometimes fails to start one of several children at once (EFAULT).
	var said []byte
	for range 5 {
		cmd := exec.CommandContext(t.Context(), filepath.Join(emulator, "usr/bin/proot"), "-q", filepath.Join(emulator, "usr/bin/qemu-aarch64-static"),
			"-r", root, "-b", "/proc", "-b", "/dev", "-b", "/sys", "-w", "/", "/usr/bin/rdma_exporter", "audit", "--provider=simulated", "--brief")
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(emulator, "usr/lib/x86_64-linux-gnu"))
		out, err := cmd.CombinedOutput()
		if err == nil && strings.Contains(string(out), "Verdict: OK, 3 devices: 3 ok") {
			t.Logf("%s", out)
			return
		}
		said = append(said, fmt.Sprintf("%v\n%s", err, out)...)
	}
	t.Errorf("the audit of simulated devices failed each time:\n%s", said)
}

// TestChart: the package is the chart, with rules, dashboards and its manual, and Helm
// takes it.
func TestChart(t *testing.T) {
	files, _ := unpacked(t, chart(t))
	for _, name := range []string{"Chart.yaml", "README.md", "values.yaml", "values.schema.json", "files/alerts/alerts.yaml", "files/dashboards/rdma-fleet.json"} {
		if len(files["rdma-exporter/"+name]) == 0 {
			t.Errorf("it lacks %s", name)
		}
	}
	if said := running.Command(t, setting(t, "RDMA_HELM"), "template", "r", chart(t), "--set", "prometheusRule.enabled=true", "--kube-version", "1.30.0"); !strings.Contains(said, "image: rdma_exporter:"+version(t)) && !strings.Contains(said, `image: "rdma_exporter:`+version(t)) {
		t.Errorf("its image is not of version %s:\n%s", version(t), said)
	}
}

// TestImage: the archive is an image of OCI, whole, of this version and commit.
func TestImage(t *testing.T) {
	archive := file(t, "rdma_exporter-"+version(t)+".linux-amd64.oci.tar")
	blobs := make(map[string][]byte)
	in := running.Must(os.Open(archive))(t)
	defer func() { _ = in.Close() }()
	for r := tar.NewReader(bufio.NewReader(in)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		running.Check(t, err)
		blobs[h.Name] = running.Must(io.ReadAll(r))(t)
	}
	type reference struct{ Digest string }
	// blob reads what a digest names, which it has to have.
	blob := func(r reference, to any) {
		t.Helper()
		text := blobs["blobs/"+strings.Replace(r.Digest, ":", "/", 1)]
		if sum := sha256.Sum256(text); "sha256:"+hex.EncodeToString(sum[:]) != r.Digest {
			t.Fatalf("there is no blob %s", r.Digest)
		}
		if to != nil {
			running.Check(t, json.Unmarshal(text, to))
		}
	}
	var index struct{ Manifests []reference }
	if err := json.Unmarshal(blobs["index.json"], &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("index.json: %v %s", err, blobs["index.json"])
	}
	var manifest struct {
		Config reference
		Layers []reference
	}
	blob(index.Manifests[0], &manifest)
	var image struct {
		Architecture string
		Config       struct {
			User   string
			Labels map[string]string
		}
	}
	blob(manifest.Config, &image)
	for _, layer := range manifest.Layers {
		blob(layer, nil)
	}
	labels := image.Config.Labels
	if image.Architecture != "amd64" || image.Config.User != "10879:10879" || labels["org.opencontainers.image.version"] != version(t) || len(labels["org.opencontainers.image.revision"]) != 40 {
		t.Errorf("the image is %+v", image)
	}
}
