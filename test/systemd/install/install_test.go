//go:build vmhost

package install_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const environment = "/etc/default/rdma_exporter"

// expected lists what is installed, given where.
func expected(t *testing.T, prefix, units, config string) []string {
	t.Helper()
	share := prefix + "/share"
	list := []string{
		"0755 " + prefix + "/bin/rdma_exporter",
		"0644 " + units + "/rdma_exporter.service",
		"0644 " + units + "/rdma_exporter.socket",
		"0644 " + config + "/default/rdma_exporter",
		"0644 " + share + "/bash-completion/completions/rdma_exporter",
		"0644 " + share + "/zsh/site-functions/_rdma_exporter",
		"0644 " + share + "/fish/vendor_completions.d/rdma_exporter.fish",
		"0644 " + share + "/rdma_exporter/installed",
		"0644 " + share + "/rdma_exporter/rdma_exporter.default",
		"0644 " + share + "/doc/rdma_exporter/LICENSE",
		"0644 " + share + "/doc/rdma_exporter/README.md",
		"0644 " + share + "/doc/rdma_exporter/CHANGELOG.md",
		"0644 " + share + "/doc/rdma_exporter/SECURITY.md",
	}
	for pattern, to := range map[string]string{
		"docs/*.md":                 "/doc/rdma_exporter/docs/",
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
	return list
}

func TestInstall(t *testing.T) {
	for _, c := range []struct {
		name                  string
		vars                  []string
		prefix, units, config string
		execStart, envFile    string
	}{
		{
			name: "default", prefix: "/usr/local", units: "/usr/local/lib/systemd/system", config: "/etc",
			execStart: "/usr/local/bin/rdma_exporter $ARGS", envFile: "-/etc/default/rdma_exporter",
		},
		{
			name: "prefix of a package", vars: []string{"PREFIX=/usr"},
			prefix: "/usr", units: "/usr/lib/systemd/system", config: "/etc",
			execStart: "/usr/bin/rdma_exporter $ARGS", envFile: "-/etc/default/rdma_exporter",
		},
		{
			name: "odd", vars: []string{"PREFIX=/opt/my site", "UNITDIR=/etc/systemd/system", "SYSCONFDIR=/opt/my etc"},
			prefix: "/opt/my site", units: "/etc/systemd/system", config: "/opt/my etc",
			execStart: `"/opt/my site/bin/rdma_exporter" $ARGS`, envFile: "-/opt/my etc/default/rdma_exporter",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := folder(t, c.vars...)
			p.mustMake(t, "install")
			got, want := p.files(t), expected(t, c.prefix, c.units, c.config)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("installed:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			unit := p.read(t, c.units+"/rdma_exporter.service")
			for _, line := range []string{"ExecStart=" + c.execStart, "EnvironmentFile=" + c.envFile} {
				if !strings.Contains(unit, "\n"+line+"\n") {
					t.Errorf("the unit has no line %s:\n%s", line, unit)
				}
			}
			p.mustMake(t, "uninstall")
			if left, err := os.ReadDir(p.dest); err != nil || len(left) > 0 {
				t.Errorf("left: %v %v", p.files(t), err)
			}
		})
	}
}

// What was there before, and what others put there, stays.
func TestUninstallLeavesOthers(t *testing.T) {
	p := folder(t)
	for _, dir := range []string{"usr/local/bin", "usr/local/share/man"} {
		if err := os.MkdirAll(filepath.Join(p.dest, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.mustMake(t, "install")
	p.write(t, "usr/local/share/rdma_exporter/dashboards/ours.json", "{}")
	p.mustMake(t, "install")
	p.mustMake(t, "uninstall")
	if got := p.files(t); !slices.Equal(got, []string{"0644 /usr/local/share/rdma_exporter/dashboards/ours.json"}) {
		t.Errorf("left: %v", got)
	}
	for dir, there := range map[string]bool{"usr/local/bin": true, "usr/local/share/man": true, "etc": false, "usr/local/lib": false, "usr/local/share/fish": false} {
		if _, err := os.Stat(filepath.Join(p.dest, dir)); (err == nil) != there {
			t.Errorf("%s is there: %v", dir, err == nil)
		}
	}
	if out, err := p.make(t, "uninstall"); err == nil || !strings.Contains(out, "nothing is installed") {
		t.Errorf("uninstalled twice: %v\n%s", err, out)
	}
}

// An environment file that was edited is neither replaced nor removed; one that was
// not is.
func TestEnvironmentFile(t *testing.T) {
	p := folder(t)
	p.mustMake(t, "install")
	byDefault := p.read(t, environment)

	// An earlier version's.
	p.write(t, environment, "ARGS=\n")
	p.write(t, "usr/local/share/rdma_exporter/rdma_exporter.default", "ARGS=\n")
	p.mustMake(t, "install")
	if got := p.read(t, environment); got != byDefault {
		t.Errorf("one that nobody edited was not replaced: %q", got)
	}

	const edited = "ARGS=--log.level=debug\n"
	p.write(t, environment, edited)
	for _, target := range []string{"install", "install", "uninstall"} {
		out := p.mustMake(t, target)
		if got := p.read(t, environment); got != edited || !strings.Contains(out, environment) {
			t.Errorf("make %s: the file is now %q, and it says\n%s", target, got, out)
		}
	}
	if got := p.files(t); !slices.Equal(got, []string{"0644 " + environment}) {
		t.Errorf("left: %v", got)
	}
	// And back to what it was.
	p.mustMake(t, "install")
	p.write(t, environment, byDefault)
	p.mustMake(t, "install")
	p.mustMake(t, "uninstall")
	if got := p.files(t); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

// Paths with slashes at their end are the paths without, and an environment file is
// known by its name, whatever the variables say at the end.
func TestSlashes(t *testing.T) {
	p := folder(t, "PREFIX=/usr/local/", "SYSCONFDIR=//etc/")
	p.mustMake(t, "install")
	const edited = "ARGS=--log.level=debug\n"
	p.write(t, environment, edited)
	p.vars = []string{"SYSCONFDIR=/opt/etc"}
	p.mustMake(t, "uninstall")
	if got := p.files(t); !slices.Equal(got, []string{"0644 " + environment}) || p.read(t, environment) != edited {
		t.Errorf("left: %v", got)
	}
}

// What an installation that failed has left can be removed.
func TestHalf(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "rdma_exporter")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := folder(t, "exporter="+broken)
	out, err := p.make(t, "install")
	if err == nil || !strings.Contains(out, "cannot be made") {
		t.Fatalf("it was installed: %v\n%s", err, out)
	}
	p.mustMake(t, "uninstall")
	if got := p.files(t); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

// An upgrade removes what only the earlier version had.
func TestUpgrade(t *testing.T) {
	p := folder(t)
	p.mustMake(t, "install")
	const old, manifest = "/usr/local/share/rdma_exporter/alerts/old.yaml", "/usr/local/share/rdma_exporter/installed"
	p.write(t, old, "")
	p.write(t, manifest, p.read(t, manifest)+"file "+old+"\n")
	p.mustMake(t, "install")
	if got := p.files(t); slices.Contains(got, "0644 "+old) || strings.Contains(p.read(t, manifest), old) {
		t.Errorf("an old file is left: %v", got)
	}
	p.mustMake(t, "uninstall")
	if got := p.files(t); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

func TestRefused(t *testing.T) {
	for name, vars := range map[string][]string{
		"relative prefix":        {"PREFIX=usr"},
		"prefix of odd letters":  {"PREFIX=/opt/100%"},
		"relative configuration": {"SYSCONFDIR=etc"},
		"nothing built":          {"exporter=/nowhere/rdma_exporter"},
	} {
		t.Run(name, func(t *testing.T) {
			p := folder(t, vars...)
			if out, err := p.make(t, "install"); err == nil {
				t.Errorf("installed:\n%s", out)
			}
			if _, err := os.Stat(p.dest); err == nil {
				t.Errorf("left: %v", p.files(t))
			}
		})
	}
}
