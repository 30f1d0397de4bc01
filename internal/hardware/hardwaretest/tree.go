// Package hardwaretest has what sysfs and procfs have of adapters of several vendors, for
// tests. Each is one file of testdata, which Tree lays out as a directory. Their counters
// and identities are facts from public captures of real adapters, or names and forms from
// the drivers' source, as the first lines of each file say; what is needed around them,
// such as a PCI bus, was written by hand. Beside sys and proc, a tree may have what the kernel
// answers over other ways: see Ethtool, and TestTrees of package collector.
//
// A line of such a file is one of these, where PATH counts from the last line that begins
// with @, or from the root:
//
//	# a comment
//	@ PATH
//	PATH: what a file has; \n is a new line, and one ends it
//	PATH -> where a symbolic link leads to
//	PATH !EINVAL, or !EIO: a file that refuses to be read
//	PATH/, an empty directory
package hardwaretest

import (
	"embed"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata
var testdata embed.FS

// Names returns the names of the trees that there are.
func Names(t testing.TB) []string {
	t.Helper()
	entries, err := testdata.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".txt"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Tree lays out a tree in a temporary directory, and returns that. It has sys and proc.
func Tree(t testing.TB, name string) (root string) {
	t.Helper()
	content, err := testdata.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	Lay(t, root, string(content))
	return root
}

// Devices returns the names of the devices in a tree.
func Devices(t testing.TB, root string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "sys/class/infiniband"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// Lay lays out the lines of a tree below root, over what is there.
func Lay(t testing.TB, root, lines string) {
	t.Helper()
	base := ""
	for line := range strings.Lines(lines) {
		line = strings.TrimRight(line, "\n")
		if at, ok := strings.CutPrefix(line, "@"); ok {
			base = strings.TrimSpace(at)
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := lay(filepath.Join(root, base), line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

// lay lays out one line.
func lay(dir, line string) error {
	if path, ok := strings.CutSuffix(line, "/"); ok && !strings.ContainsAny(path, " ") {
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			return err
		}
		return os.MkdirAll(filepath.Join(dir, path), 0o755)
	}
	target := ""
	path, content, isFile := strings.Cut(line, ": ")
	if link, to, ok := strings.Cut(line, " -> "); ok && !isFile {
		path, target = link, to
	} else if name, ok := strings.CutSuffix(line, " !EINVAL"); ok {
		path, target = name, refusesEINVAL
	} else if name, ok := strings.CutSuffix(line, " !EIO"); ok {
		path, target = name, refusesEIO
	}
	path = filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if target != "" {
		return os.Symlink(target, path)
	}
	return os.WriteFile(path, []byte(strings.ReplaceAll(content, `\n`, "\n")+"\n"), 0o644)
}

// Files of the kernel that refuse to be read, with an errno that is always the same: a
// loopback interface has no speed, and no process has memory at 0.
const (
	refusesEINVAL = "/sys/class/net/lo/speed"
	refusesEIO    = "/proc/self/mem"
)
