package owner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A hierarchy is a line of /proc/[pid]/cgroup.
type hierarchy struct {
	// controllers are empty for version 2.
	controllers []string
	path        string
}

func (h hierarchy) isV2() bool { return len(h.controllers) == 0 }

// decodeCgroups decodes /proc/[pid]/cgroup, see cgroups(7): lines of "id:controllers:path", for
// version 2 "0::path". Paths may contain colons, but no line breaks. Package procfs accepts invalid
// paths and truncates long files.
func decodeCgroups(data []byte) ([]hierarchy, error) {
	var hs []hierarchy
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			return nil, fmt.Errorf("%q is not id:controllers:path", line)
		}
		id, err := strconv.ParseUint(parts[0], 10, 31)
		if err != nil || (id == 0) != (parts[1] == "") {
			return nil, fmt.Errorf("%q is of neither version 1 nor 2", line)
		}
		h := hierarchy{path: parts[2]}
		if parts[1] != "" {
			h.controllers = strings.Split(parts[1], ",")
		}
		hs = append(hs, h)
	}
	return hs, nil
}

// order sorts hierarchies by reliability: that of the rdma controller, version 2, those of systemd
// and the container runtimes, and the rest in the order of the file.
func order(hs []hierarchy) []hierarchy {
	rank := func(h hierarchy) int {
		for i, controller := range []string{"rdma", "", "name=systemd", "pids", "memory"} {
			if slices.Contains(h.controllers, controller) || controller == "" && h.isV2() {
				return i
			}
		}
		return len(hs) + 5
	}
	sorted := slices.Clone(hs)
	slices.SortStableFunc(sorted, func(a, b hierarchy) int { return rank(a) - rank(b) })
	return sorted
}

// pathOf returns the path to show, and for the RDMA controller, from ordered hierarchies.
func pathOf(hs []hierarchy) string {
	if len(hs) == 0 {
		return ""
	}
	if slices.Contains(hs[0].controllers, "rdma") {
		// The controller has no other path, even if this is the root.
		return hs[0].path
	}
	for _, h := range hs {
		if container, pod := ParseCgroup(h.path); container != "" || pod != "" {
			return h.path
		}
	}
	for _, h := range hs {
		if h.path != "/" {
			return h.path
		}
	}
	return hs[0].path
}

// containerOf returns the container and pod of the first of ordered hierarchies that names a
// container, or otherwise a pod.
func containerOf(hs []hierarchy) (containerID, podUID string) {
	for _, h := range hs {
		c, p := ParseCgroup(h.path)
		if c != "" {
			return c, p
		}
		if podUID == "" {
			podUID = p
		}
	}
	return "", podUID
}
