package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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
	if err := errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if names, err := discover(); err == nil {
		t.Errorf("got %v and no error for a file", names)
	}
}
