package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rdma_exporter/test/running"
)

func TestSysfsDevices(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	discover := SysfsDevices(root)
	if names, err := discover(); err != nil || len(names) != 0 {
		t.Errorf("without the folder: %v, %v", names, err)
	}
	folder := filepath.Join(root, "class", "infiniband")
	running.Check(t, os.MkdirAll(folder, 0o700))
	// In sysfs they are links, which need not lead anywhere.
	for _, name := range []string{"mlx5_1", "rxe0", "mlx5_0"} {
		running.Check(t, os.Symlink("../../devices/none/"+name, filepath.Join(folder, name)))
	}
	names, err := discover()
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{"mlx5_0", "mlx5_1", "rxe0"}) {
		t.Errorf("got %v, %v", names, err)
	}
	running.Check(t, errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)))
	if names, err := discover(); err == nil {
		t.Errorf("got %v and no error for a file", names)
	}
}
