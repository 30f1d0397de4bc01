package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
)

// Identity returns what the answers of the device depend on, given the kernel's release.
func (s *Session) Identity(kernel string) state.Identity {
	return state.Identity{
		Kernel:   kernel,
		Firmware: strings.ToValidUTF8(s.Attr.Firmware, "?"),
		VendorID: s.Attr.VendorID, VendorPartID: s.Attr.VendorPartID, HWVersion: s.Attr.HWVersion,
		Libraries: libraries(),
	}
}

// MappedFiles returns the files that the process has mapped, sorted. Nil means unknown.
func MappedFiles() []string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(maps)) {
		// Only the name, which is last, has a slash.
		if i := strings.IndexByte(line, '/'); i >= 0 {
			files = append(files, strings.TrimSuffix(line[i:], "\n"))
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// libraries returns a digest of all shared libraries of the process, with those of the vendor
// that libibverbs loads to open the device. Empty means unknown.
func libraries() string {
	files := slices.DeleteFunc(MappedFiles(), func(file string) bool { return !strings.Contains(filepath.Base(file), ".so") })
	if len(files) == 0 {
		return ""
	}
	digest := sha256.New()
	for _, file := range files {
		// A file that was replaced since it was loaded counts as another one.
		size, changed := int64(-1), int64(0)
		if info, err := os.Stat(file); err == nil {
			size, changed = info.Size(), info.ModTime().UnixNano()
		}
		fmt.Fprintf(digest, "%q %d %d\n", file, size, changed)
	}
	return hex.EncodeToString(digest.Sum(nil)[:8])
}
