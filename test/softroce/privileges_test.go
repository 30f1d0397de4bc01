//go:build vm

package softroce

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"rdma_exporter/test/running"
)

// Any user can read the exporter's file where this puts it.
func publicBinary(t *testing.T) string {
	t.Helper()
	dir := running.Must(os.MkdirTemp("", "softroce"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	running.Check(t, os.Chmod(dir, 0o755))
	from := running.Must(os.Open(exporterFile))(t)
	defer func() { _ = from.Close() }()
	path := filepath.Join(dir, "rdma_exporter")
	to := running.Must(os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755))(t)
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	running.Check(t, to.Close())
	return path
}
