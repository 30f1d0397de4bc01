package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSysfsDevices(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	discover := SysfsDevices(root)
	if names, err := discover(); err != nil || len(names) != 0 {
		t.Errorf("without the folder: %v, %v", names, err)
	}
	folder := filepath.Join(root, "class", "infiniband")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if names, err := discover(); err != nil || len(names) != 0 {
		t.Errorf("with an empty folder: %v, %v", names, err)
	}
	// In sysfs they are links, which need not lead anywhere.
	for _, name := range []string{"mlx5_1", "rxe0", "mlx5_0"} {
		if err := os.Symlink("../../devices/none/"+name, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	names, err := discover()
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{"mlx5_0", "mlx5_1", "rxe0"}) {
		t.Errorf("got %v, %v", names, err)
	}
}

func TestSysfsDevicesError(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "class"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "class", "infiniband"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if names, err := SysfsDevices(root)(); err == nil {
		t.Errorf("got %v and no error for a file", names)
	}
}

func TestSift(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxName)
	good, bad := sift([]string{"b", "a", "b", "", "a/b", "/", "", ".", "..", "...", "a b", "\xff", "é", long, long + "x"})
	if want := []string{"...", "a", "a b", "b", long, "é"}; !slices.Equal(good, want) {
		t.Errorf("good %q, want %q", good, want)
	}
	if want := []string{"", ".", "..", "/", "a/b", long + "x", "\xff"}; !slices.Equal(bad, want) {
		t.Errorf("bad %q, want %q", bad, want)
	}
}
