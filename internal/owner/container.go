package owner

import (
	"slices"
	"strings"
)

// ParseCgroup returns the container in the path of a cgroup: its id, 64 hexadecimal digits, and the
// uid of the Kubernetes pod. Each may be empty.
//
// These are known, at any depth, below any parents, and with further cgroups below:
//
//   - Kubernetes, cgroupfs driver: kubepods/burstable/pod<uid>/<id>, besteffort
//     likewise, or kubepods/pod<uid>/<id>; CRI-O's crio-<id>.
//   - Kubernetes, systemd driver: …kubepods-burstable-pod<uid>.slice/<name>-<id>.scope,
//     with underscores in the uid, and a name as below. A runtime with cgroupfs under
//     such a kubelet makes one name of it, …pod<uid>.slice:cri-containerd:<id>.
//   - Scopes, with and without ".scope": cri-containerd and nerdctl (containerd),
//     crio (cri-o), docker, libpod and libpod-payload (podman).
//   - Plain ids: docker/<id>, containerd's /default/<id>, and <id> below any other
//     parent.
//
// The innermost container wins, so that one in a node of kind is not taken for the node. The pod is
// the innermost around it. A process in a pod's cgroup but in none of its containers has only a pod.
//
// The monitors of CRI-O and Podman (crio-conmon-<id>.scope, libpod-conmon-<id>.scope) are not in the
// container that they watch. Only the pod is returned for them, if they are in its slice.
//
// A pod's uid has dashes, as Kubernetes prints it. A static pod has a hash of 32 digits. A path that
// climbs out of the reader's cgroup namespace ("/../<id>") may have lost the part with the pod.
func ParseCgroup(path string) (containerID, podUID string) {
	// The kernel marks a cgroup that was removed while a zombie was in it (cgroup-v2.rst).
	names := strings.Split(strings.TrimSuffix(path, " (deleted)"), "/")
	for i, name := range slices.Backward(names) {
		parent := ""
		if i > 0 {
			parent = names[i-1]
		}
		if containerID == "" {
			containerID = parseContainer(name, parent)
		}
		if podUID = parsePod(name, parent); podUID != "" {
			break
		}
	}
	return containerID, podUID
}

func parseContainer(name, parent string) (id string) {
	if isContainerID(name) {
		if parent == "libpod_parent" {
			// Podman's pods have ids of the same form.
			return ""
		}
		return name
	}
	var prefix string
	if parts := strings.Split(name, ":"); len(parts) == 3 {
		// Runtimes name a scope slice:prefix:id. Without systemd they create a cgroup of this name.
		prefix, id = parts[1], parts[2]
	} else {
		base := strings.TrimSuffix(name, ".scope")
		dash := strings.LastIndexByte(base, '-')
		if dash < 0 {
			return ""
		}
		prefix, id = base[:dash], base[dash+1:]
	}
	switch prefix {
	case "cri-containerd", "nerdctl", "crio", "docker", "libpod", "libpod-payload":
		if isContainerID(id) {
			return id
		}
	}
	return ""
}

func parsePod(name, parent string) string {
	name, _, _ = strings.Cut(name, ":")
	if slice, ok := strings.CutSuffix(name, ".slice"); ok {
		// A slice's name has those of all slices around it: kubelet-kubepods-pod….
		dash := strings.LastIndex(slice, "-pod")
		if dash < 0 || !slices.Contains(strings.Split(slice[:dash], "-"), "kubepods") {
			return ""
		}
		return podUID(strings.ReplaceAll(slice[dash+len("-pod"):], "_", "-"))
	}
	uid, ok := strings.CutPrefix(name, "pod")
	if !ok {
		return ""
	}
	switch parent {
	case "kubepods", "burstable", "besteffort", "..":
		return podUID(uid)
	default:
		return ""
	}
}

// podUID returns s if it is a UUID, or the hash of a static pod.
func podUID(s string) string {
	hash := strings.ReplaceAll(s, "-", "")
	if len(hash) != 32 || !isHex(hash) {
		return ""
	}
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' || len(s) == 32 {
		return s
	}
	return ""
}

func isContainerID(s string) bool { return len(s) == 64 && isHex(s) }

// isHex reports whether s consists of hexadecimal digits as printed by %x.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
