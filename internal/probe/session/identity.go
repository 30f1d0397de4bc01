package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

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

// libraries returns a digest of the shared libraries that the process has by now, those
// of the device's vendor too, which libibverbs loads to open it; empty if the kernel
// does not tell. They are all taken, whatever their names: which of them has a part in
// what a device answers only they know.
func libraries() string {
	self, err := procfs.Self()
	if err != nil {
		return ""
	}
	maps, err := self.ProcMaps()
	if err != nil {
		return ""
	}
	var files []string
	for _, m := range maps {
		if strings.Contains(filepath.Base(m.Pathname), ".so") {
			files = append(files, m.Pathname)
		}
	}
	slices.Sort(files)
	digest := sha256.New()
	for _, file := range slices.Compact(files) {
		// One that was replaced since it was loaded is another one, too.
		size, changed := int64(-1), int64(0)
		if info, err := os.Stat(file); err == nil {
			size, changed = info.Size(), info.ModTime().UnixNano()
		}
		fmt.Fprintf(digest, "%q %d %d\n", file, size, changed)
	}
	return hex.EncodeToString(digest.Sum(nil)[:8])
}
