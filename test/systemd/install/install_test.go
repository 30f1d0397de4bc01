//go:build vmhost

package install_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/links"
	"rdma_exporter/test/running"
)

const environment = "/etc/default/rdma_exporter"

// expected lists what is installed, given where zsh looks.
func expected(t *testing.T, zsh string) []string {
	t.Helper()
	const share = "/usr/share"
	list := []string{
		"0755 /usr/bin/rdma_exporter",
		"0644 /usr/lib/systemd/system/rdma_exporter.service",
		"0644 /usr/lib/systemd/system/rdma_exporter.socket",
		"0644 " + environment,
		"0644 " + share + "/rdma_exporter/npd/rdma.json",
		"0644 " + share + "/rdma_exporter/npd/nvsentinel.yaml",
		"0755 " + share + "/rdma_exporter/slurm/rdma-healthcheck",
		"0755 " + share + "/rdma_exporter/slurm/rdma-prolog",
		"0644 " + share + "/man/man1/rdma_exporter.1.gz",
		"0644 " + share + "/bash-completion/completions/rdma_exporter",
		"0644 " + share + "/zsh/" + zsh + "/_rdma_exporter",
		"0644 " + share + "/fish/vendor_completions.d/rdma_exporter.fish",
		"0644 " + share + "/doc/rdma-exporter/copyright",
		"0644 " + share + "/doc/rdma-exporter/README.md",
		"0644 " + share + "/doc/rdma-exporter/CHANGELOG.md",
		"0644 " + share + "/doc/rdma-exporter/SECURITY.md",
		"0777 " + share + "/doc/rdma-exporter/LICENSE",
		"0777 " + share + "/doc/rdma-exporter/alerts",
		"0777 " + share + "/doc/rdma-exporter/dashboards",
	}
	for pattern, to := range map[string]string{
		"docs/*.md":                 "/doc/rdma-exporter/docs/",
		"docs/images/*":             "/doc/rdma-exporter/docs/images/",
		"docs/reference/*.md":       "/doc/rdma-exporter/docs/reference/",
		"alerts/*.yaml":             "/rdma_exporter/alerts/",
		"dashboards/*.json":         "/rdma_exporter/dashboards/",
		"deploy/systemd/examples/*": "/rdma_exporter/examples/",
	} {
		files, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, file := range files {
			list = append(list, "0644 "+share+to+filepath.Base(file))
		}
	}
	slices.Sort(list)
	return list
}

func TestContents(t *testing.T) {
	if got, want := installed(t).files(t), expected(t, "vendor-completions"); !slices.Equal(got, want) {
		t.Errorf("the deb:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	said := output(t, exec.CommandContext(t.Context(), "rpm", "-qp", "--qf", `[%{FILEMODES:octal} %{FILENAMES}\n]`, rpm))
	var got []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if file, ok := strings.CutPrefix(line, "10"); ok {
			got = append(got, file)
		} else if link, ok := strings.CutPrefix(line, "120000"); ok {
			got = append(got, "0777"+link) // as every symbolic link has it
		}
	}
	slices.Sort(got)
	if want := expected(t, "site-functions"); !slices.Equal(got, want) {
		t.Errorf("the rpm:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What the installed pages link to is installed.
func TestLinks(t *testing.T) {
	n := links.Check(t, filepath.Join(installed(t).dest, "usr/share/doc/rdma-exporter"))
	t.Logf("%d links", n)
	if n < 300 {
		t.Errorf("only %d links were found", n)
	}
}

// The packages ask for the libraries that the program asks for.
func TestDependencies(t *testing.T) {
	binary := running.Must(elf.Open(exporter))(t)
	defer func() { _ = binary.Close() }()
	symbols := running.Must(binary.ImportedSymbols())(t)
	requires := strings.Fields(output(t, exec.CommandContext(t.Context(), "rpm", "-qp", "--requires", rpm)))
	depends := output(t, exec.CommandContext(t.Context(), "dpkg-deb", "--field", deb, "Depends"))
	newest := make(map[string]string) // of each library
	for _, s := range symbols {
		if s.Version != "" && later(s.Version, newest[s.Library]) {
			newest[s.Library] = s.Version
		}
	}
	for library, version := range newest {
		if want := library + "(" + version + ")(64bit)"; !slices.Contains(requires, want) {
			t.Errorf("the rpm requires %q, not %s", requires, want)
		}
	}
	// libibverbs has had the symbols of version 1.11 since version 32.
	glibc := strings.TrimPrefix(newest["libc.so.6"], "GLIBC_")
	if want := "libc6 (>= " + glibc + "), libibverbs1 (>= 32)"; len(newest) != 2 || newest["libibverbs.so.1"] != "IBVERBS_1.11" || depends != want {
		t.Errorf("the program needs %v, and the deb %s", newest, depends)
	}
}

// later reports whether a is a later version of symbols than b.
func later(a, b string) bool {
	return exec.Command("dpkg", "--compare-versions", strings.ReplaceAll(a, "_", "-"), "gt", strings.ReplaceAll(b, "_", "-")).Run() == nil
}

// earlier makes a package of an earlier version, with another environment file and
// rules that the later version does not have.
func earlier(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "earlier")
	output(t, exec.CommandContext(t.Context(), "dpkg-deb", "--raw-extract", deb, dir))
	p := place{dest: dir}
	control := p.read(t, "DEBIAN/control")
	version := output(t, exec.CommandContext(t.Context(), "dpkg-deb", "--field", deb, "Version"))
	p.write(t, "DEBIAN/control", strings.Replace(control, "\nVersion: "+version+"\n", "\nVersion: "+version+"~earlier\n", 1))
	p.write(t, environment, "ARGS=\n")
	p.write(t, "usr/bin/rdma_exporter", "")
	p.write(t, oldRules, "groups: []\n")
	output(t, exec.CommandContext(t.Context(), "dpkg-deb", "--root-owner-group", "-Znone", "--build", dir))
	return dir + ".deb"
}

const oldRules = "/usr/share/rdma_exporter/alerts/old.yaml"

// An upgrade removes what only the earlier version had, and replaces an unedited environment file. An
// edited one is neither replaced nor removed, until the package is purged, which leaves nothing.
func TestUpgradeAndRemove(t *testing.T) {
	earlier := earlier(t)
	p := folder(t)
	p.dpkg(t, "--install", earlier)
	if got := p.files(t); !slices.Contains(got, "0644 "+oldRules) {
		t.Fatalf("the earlier version: %v", got)
	}
	p.dpkg(t, "--install", deb)
	if got, want := p.files(t), expected(t, "vendor-completions"); !slices.Equal(got, want) {
		t.Errorf("after an upgrade:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := p.read(t, environment); !strings.Contains(got, "ARGS=\"\"") {
		t.Errorf("an unedited environment file was not replaced: %q", got)
	}

	const edited = "ARGS=--log.level=debug\n"
	p.write(t, environment, edited)
	p.dpkg(t, "--install", earlier)
	p.dpkg(t, "--install", deb)
	if got := p.read(t, environment); got != edited {
		t.Errorf("after an upgrade the environment file that was edited is %q", got)
	}
	p.dpkg(t, "--remove", "rdma-exporter")
	// The default of the later version is next to it.
	if got := p.files(t); !slices.Contains(got, "0644 "+environment) || slices.ContainsFunc(got, func(f string) bool { return !strings.HasPrefix(f, "0644 "+environment) }) {
		t.Errorf("left when it was removed: %v", got)
	}
	if got := p.read(t, environment); got != edited {
		t.Errorf("when it was removed the environment file that was edited became %q", got)
	}
	p.dpkg(t, "--purge", "rdma-exporter")
	if left, err := os.ReadDir(p.dest); err != nil || len(left) > 0 {
		t.Errorf("left when it was purged: %v %v", p.files(t), err)
	}
}

// The same of the rpm, whose scripts need a whole system and are left out. There is
// no earlier version: that rpm keeps an edited file, whatever the new one is, is told
// by the flags of the file.
func TestRPM(t *testing.T) {
	if flags := output(t, exec.CommandContext(t.Context(), "rpm", "-qp", "--qf", "[%{FILENAMES} %{FILEFLAGS:fflags}\n]", rpm)); !slices.Contains(strings.Split(flags, "\n"), environment+" cn") {
		t.Errorf("the environment file is no configuration that is not replaced:\n%s", flags)
	}
	p := folder(t)
	database := filepath.Join("/", "rpmdb") // below the place
	rpmIn := func(args ...string) {
		t.Helper()
		output(t, exec.CommandContext(t.Context(), "unshare", append([]string{
			"--map-root-user", "rpm", "--root=" + p.dest, "--dbpath=" + database, "--nodeps", "--noscripts", "--nosignature",
		}, args...)...))
	}
	rpmIn("--install", rpm)
	const edited = "ARGS=--log.level=debug\n"
	p.write(t, environment, edited)
	rpmIn("--upgrade", "--replacepkgs", rpm)
	if got := p.read(t, environment); got != edited {
		t.Errorf("after an upgrade the environment file that was edited is %q", got)
	}
	rpmIn("--erase", "rdma-exporter")
	running.Check(t, os.RemoveAll(filepath.Join(p.dest, database)))
	if got := p.files(t); !slices.Equal(got, []string{"0644 " + environment + ".rpmsave"}) || p.read(t, environment+".rpmsave") != edited {
		t.Errorf("left when it was removed: %v", got)
	}
	if _, err := os.Stat(filepath.Join(p.dest, "usr/share/rdma_exporter")); err == nil {
		t.Error("folders of its own are left")
	}
}

// The manual page is where man(1) looks, and can be rendered.
func TestManPage(t *testing.T) {
	page := filepath.Join(installed(t).dest, "usr/share/man/man1/rdma_exporter.1.gz")
	if said := output(t, exec.CommandContext(t.Context(), "mandoc", "-T", "lint", "-W", "error", page)); said != "" {
		t.Error(said)
	}
	if said := output(t, exec.CommandContext(t.Context(), "mandoc", "-T", "ascii", page)); !strings.Contains(said, "rdma_exporter - Prometheus exporter") {
		t.Errorf("it says\n%s", said)
	}
}
