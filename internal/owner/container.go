package owner

import (
	"slices"
	"strings"
)

// ParseCgroup tells what the path of a cgroup says of a container: the id, 64
// hexadecimal digits, and the uid of the Kubernetes pod. What it says nothing about is
// empty; of a path of no container both are.
//
// These are known, at any depth, below any parents, and with further cgroups below:
//
//   - Kubernetes, cgroupfs driver: kubepods/burstable/pod<uid>/<id>, besteffort
//     likewise, or kubepods/pod<uid>/<id>; CRI-O's crio-<id>.
//   - Kubernetes, systemd driver: …kubepods-burstable-pod<uid>.slice/<name>-<id>.scope,
//     with underscores in the uid, and a name as below. A runtime that uses cgroupfs
//     under such a kubelet makes that one name, …pod<uid>.slice:cri-containerd:<id>.
//   - Scopes, with and without ".scope": cri-containerd and nerdctl (containerd),
//     crio (cri-o), docker, libpod and libpod-payload (podman).
//   - Plain ids: docker/<id>, containerd's /default/<id>, and <id> below any other
//     parent that the administrator chose.
//
// The innermost container wins, so that one in a node of kind is not taken for the
// node. The pod is the innermost around it. A process in a pod's cgroup and in no
// container of that pod has a pod only.
//
// The monitors of CRI-O and Podman, in crio-conmon-<id>.scope and
// libpod-conmon-<id>.scope, are not in the container that they watch and would be
// blamed on it, so their id is not returned; the pod is, if they are in its slice.
//
// A pod's uid is returned as Kubernetes prints it: with dashes, save that of a static
// pod, whose uid on the node is a hash of 32 digits. A path that climbs out of the
// cgroup namespace of the reader ("/../<id>") may have lost the part with the pod.
func ParseCgroup(path string) (containerID, podUID string) {
	// So the kernel marks a cgroup that was removed while a zombie was in it
	// (cgroup-v2.rst).
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

// parseContainer tells of which container a cgroup of that name is.
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
		// slice:prefix:id, which is how runtimes pass the name of a scope on. One that
		// does not use systemd creates a cgroup of that very name.
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

// parsePod tells of which Kubernetes pod a cgroup of that name is.
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

// podUID returns s if it is a pod's uid: a UUID, or the hash of a static pod.
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

// isContainerID reports whether s is what all of these runtimes use as an id.
func isContainerID(s string) bool { return len(s) == 64 && isHex(s) }

// isHex reports whether s is of hexadecimal digits as Go's and C's %x print them.
func isHex(s string) bool {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return true
}
