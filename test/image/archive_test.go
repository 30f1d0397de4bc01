//go:build image || imagevm

package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// patience is how long a test waits for what must happen at some time. It is no
// measure of how long that may take.
const patience = 5 * time.Minute

// configuration is how an image is run, in the format of docker.
type configuration struct {
	Config struct {
		User         string
		ExposedPorts map[string]struct{}
		Env          []string
		Cmd          []string
		Entrypoint   []string
		WorkingDir   string
		Volumes      map[string]struct{}
		Labels       map[string]string
		Healthcheck  struct {
			Test                           []string
			Interval, Timeout, StartPeriod time.Duration
		}
	} `json:"config"`
	History []struct {
		CreatedBy string `json:"created_by"`
	} `json:"history"`
}

// manifest is the first of an archive.
type manifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// built returns the path of something that tools/image made.
func built(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("RDMA_IMAGE")
	if !filepath.IsAbs(dir) {
		t.Fatalf("RDMA_IMAGE is %q: set it to the absolute path of the folder that tools/image writes, .cache/image", dir)
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("RDMA_IMAGE (%v): build the image first, with tools/image", err)
	}
	return path
}

// archive is the image as it is shipped.
type archive struct {
	manifest manifest
	configuration
	// raw is the whole configuration.
	raw []byte
	// layers are what its file system is made of: tar archives.
	layers [][]byte
}

// read reads the archive that tools/image made.
func read(t *testing.T) *archive {
	t.Helper()
	files := make(map[string][]byte)
	file := running.Must(os.Open(built(t, "rdma_exporter.tar")))(t)
	defer func() { _ = file.Close() }()
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		running.Check(t, err)
		files[header.Name] = running.Must(io.ReadAll(r))(t)
	}
	var manifests []manifest
	if err := json.Unmarshal(files["manifest.json"], &manifests); err != nil || len(manifests) != 1 {
		t.Fatalf("the manifest is %s (%v)", files["manifest.json"], err)
	}
	a := &archive{manifest: manifests[0], raw: files[manifests[0].Config]}
	running.Check(t, json.Unmarshal(a.raw, &a.configuration))
	for _, name := range a.manifest.Layers {
		a.layers = append(a.layers, files[name])
	}
	return a
}
