package owner

import (
	"strings"
	"testing"
)

const (
	id1    = "6d393320601b821561e43bd46f658284cb172cf297ecc3d3665be657870d32e2"
	id2    = "b2a102854b4969b2ce98dc329c86b4fb2b06e4ad2cc8da9d8a7578c9cd2004a2"
	uid1   = "57e67067-89e4-4001-bdd4-8632d39ea02b"
	uid1_  = "57e67067_89e4_4001_bdd4_8632d39ea02b"
	uid2   = "2c48913c-b29f-11e7-9350-020968147796"
	static = "b1e89a2fcc688644de3eb95aee8025ce"
)

// container is a path and what it says.
type container struct {
	name, path, containerID, pod string
}

// containers are the paths that each runtime makes, with each driver.
func containers() []container {
	const (
		burstable  = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uid1_ + ".slice"
		besteffort = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + uid1_ + ".slice"
		guaranteed = "/kubepods.slice/kubepods-pod" + uid1_ + ".slice"
		kind       = "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod"
	)
	return []container{
		// Kubernetes, cgroupfs driver.
		{"cgroupfs burstable", "/kubepods/burstable/pod" + uid1 + "/" + id1, id1, uid1},
		{"cgroupfs besteffort", "/kubepods/besteffort/pod" + uid1 + "/" + id1, id1, uid1},
		{"cgroupfs guaranteed", "/kubepods/pod" + uid1 + "/" + id1, id1, uid1},
		{"cgroupfs static pod", "/kubepods/burstable/pod" + static + "/" + id1, id1, static},
		{"cgroupfs cri-o", "/kubepods/burstable/pod" + uid1 + "/crio-" + id1, id1, uid1},
		{"cgroupfs cri-o monitor", "/kubepods/burstable/pod" + uid1 + "/crio-conmon-" + id1, "", uid1},
		{"cgroupfs below a root", "/mygroup/kubepods/burstable/pod" + uid1 + "/" + id1, id1, uid1},
		{"cgroupfs sub-cgroup", "/kubepods/burstable/pod" + uid1 + "/" + id1 + "/app/worker", id1, uid1},
		{"cgroupfs pod only", "/kubepods/burstable/pod" + uid1, "", uid1},
		// Kubernetes, systemd driver.
		{"systemd burstable containerd", burstable + "/cri-containerd-" + id1 + ".scope", id1, uid1},
		{"systemd guaranteed containerd", guaranteed + "/cri-containerd-" + id1 + ".scope", id1, uid1},
		{"systemd cri-o", burstable + "/crio-" + id1 + ".scope", id1, uid1},
		{"systemd cri-o crun", guaranteed + "/crio-" + id1 + ".scope/container", id1, uid1},
		{"systemd cri-o monitor", burstable + "/crio-conmon-" + id1 + ".scope", "", uid1},
		{"systemd docker", besteffort + "/docker-" + id1 + ".scope", id1, uid1},
		{"systemd static pod", "/kubepods.slice/kubepods-pod" + static + ".slice/crio-" + id1 + ".scope", id1, static},
		{"systemd uid with dashes", "/kubepods.slice/kubepods-pod" + uid2 + ".slice/docker-" + id1 + ".scope", id1, uid2},
		{"systemd pod only", burstable, "", uid1},
		{"systemd slice of a class", "/kubepods.slice/kubepods-burstable.slice", "", ""},
		// containerd with cgroupfs below a kubelet with systemd.
		{"colons", "/kubepods-burstable-pod" + uid1_ + ".slice:cri-containerd:" + id1, id1, uid1},
		{"colons sub-cgroup", "/kubepods-pod" + uid1_ + ".slice:cri-containerd:" + id1 + "/app", id1, uid1},
		{"colons cri-o", "/kubepods-pod" + uid1_ + ".slice:crio:" + id1, id1, uid1},
		{"colons no id", "/kubepods-pod" + uid1_ + ".slice:cri-containerd:kata_" + id1, "", uid1},
		// Nested.
		{"kind systemd", kind + uid1_ + ".slice/cri-containerd-" + id1 + ".scope", id1, uid1},
		{"kind cgroupfs", "/docker/" + id2 + "/kubelet/kubepods/burstable/pod" + uid1 + "/" + id1, id1, uid1},
		{"kind systemd from outside", "/system.slice/docker-" + id2 + ".scope" + kind + uid1_ + ".slice/cri-containerd-" + id1 + ".scope", id1, uid1},
		{"kind node", "/docker/" + id2 + "/system.slice/kubelet.service", id2, ""},
		{"docker in a pod", "/kubepods/burstable/pod" + uid1 + "/" + id2 + "/docker/" + id1, id1, uid1},
		{"pod in a pod", "/kubepods/pod" + uid2 + "/" + id2 + "/docker/" + id2 + "/kubelet/kubepods/pod" + uid1 + "/" + id1, id1, uid1},
		// Without Kubernetes.
		{"docker cgroupfs", "/docker/" + id1, id1, ""},
		{"docker systemd", "/system.slice/docker-" + id1 + ".scope", id1, ""},
		{"docker rootless", "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" + id1 + ".scope", id1, ""},
		{"podman", "/machine.slice/libpod-" + id1 + ".scope", id1, ""},
		{"podman cgroupfs", "/libpod_parent/libpod-" + id1, id1, ""},
		{"podman monitor", "/machine.slice/libpod-conmon-" + id1 + ".scope", "", ""},
		{"podman split", "/system.slice/nginx.service/libpod-payload-" + id1, id1, ""},
		{"podman split monitor", "/system.slice/nginx.service/runtime", "", ""},
		{"podman pod", "/machine.slice/machine-libpod_pod_" + id2 + ".slice/libpod-" + id1 + ".scope", id1, ""},
		{"podman pod cgroupfs", "/libpod_parent/" + id2, "", ""},
		{"podman health check", "/system.slice/" + id1 + ".service", "", ""},
		{"containerd", "/default/" + id1, id1, ""},
		{"nerdctl systemd", "/system.slice/nerdctl-" + id1 + ".scope", id1, ""},
		// Relative to a cgroup namespace.
		{"relative", "/../../kubepods-burstable.slice/kubepods-burstable-pod" + uid1_ + ".slice/cri-containerd-" + id1 + ".scope", id1, uid1},
		{"relative, from the class", "/../../kubepods-burstable-pod" + uid1_ + ".slice/crio-" + id1 + ".scope", id1, uid1},
		{"relative cgroupfs", "/../../pod" + uid1 + "/" + id1, id1, uid1},
		{"relative, same pod", "/../crio-" + id1 + ".scope", id1, ""},
		{"own namespace", "/", "", ""},
		{"parent of own namespace", "/..", "", ""},
		{"removed", burstable + "/crio-" + id1 + ".scope (deleted)", id1, uid1},
		// None.
		{"nothing", "", "", ""},
		{"unit", "/system.slice/ssh.service", "", ""},
		{"user", "/user.slice/user-1000.slice/session-3.scope", "", ""},
		{"32 digits", "/process_api/4579f766d1375f659b823ccbf5dc9158", "", ""},
		{"63 digits", "/docker/" + id1[1:], "", ""},
		{"65 digits", "/docker/0" + id1, "", ""},
		{"capitals", "/docker/" + strings.ToUpper(id1), "", ""},
		{"no digit", "/docker/g" + id1[1:], "", ""},
		{"unknown prefix", "/system.slice/backup-" + id1 + ".scope", "", ""},
		{"mount", "/system.slice/docker-" + id1 + ".mount", "", ""},
		{"short scope", "/system.slice/docker-1234.scope", "", ""},
		{"malformed uid", "/kubepods/burstable/pod57e67067-89e4-4001-bdd48-632d39ea02b/" + id1, id1, ""},
		{"misplaced dash", "/kubepods/burstable/pod57e6706-789e4-4001-bdd4-8632d39ea02b/" + id1, id1, ""},
		{"32 with dashes", "/kubepods/burstable/pod57e67067-89e4-4001-bdd4-8632d39e/" + id1, id1, ""},
		{"short uid", "/kubepods/burstable/pod1234/" + id1, id1, ""},
		{"pod elsewhere", "/garden/pod" + uid1 + "/x", "", ""},
		{"slice elsewhere", "/space.slice/space-pod" + uid1_ + ".slice/x.scope", "", ""},
	}
}

func TestParseCgroup(t *testing.T) {
	for _, c := range containers() {
		if containerID, pod := ParseCgroup(c.path); containerID != c.containerID || pod != c.pod {
			t.Errorf("%s: %q has container %q, pod %q, want %q, %q", c.name, c.path, containerID, pod, c.containerID, c.pod)
		}
	}
}

// TestSlurmJob verifies that a job is found in the paths that Slurm makes, and in no other.
func TestSlurmJob(t *testing.T) {
	const scope = "/system.slice/slurmstepd.scope"
	for path, want := range map[string]string{
		// Version 1.
		"/slurm/uid_1000/job_4711/step_0/task_0":   "4711",
		"/slurm/uid_1000/job_4711/step_batch":      "4711",
		"/slurm/uid_1000/job_4711":                 "4711",
		"/slurm_node17/uid_0/job_4294967295/step_": "4294967295",
		// Version 2.
		scope + "/job_4711/step_0/user/task_0":                                             "4711",
		scope + "/job_4711/step_extern/user/task_special":                                  "4711",
		scope + "/job_4711/step_0/slurm":                                                   "4711",
		"/system.slice/node17_slurmstepd.scope/job_4711":                                   "4711",
		"/hpc.slice/slurmstepd.scope/job_4711/step_0/user/task_0":                          "4711",
		"/kubepods/pod" + uid1 + "/" + id1 + "/system.slice/slurmstepd.scope/job_1/step_0": "1",
		scope + "/sEKNKTV3WPV500/step_0/user/task_0":                                       "sEKNKTV3WPV500",
		// None.
		"": "", "/": "", scope: "", scope + "/system": "", "/system.slice/slurmd.service": "",
		"/slurm/uid_1000": "", "/slurm/uid_1000/job_": "", "/slurm/uid_1000/job_47x": "", "/slurm/uid_1000/job_-1": "",
		"/slurm/uid_1000/job_12345678901": "", "/slurm/job_4711": "", "/user.slice/job_4711": "",
		"/my_slurmstepd.scope.d/job_4711": "", scope + "/sEKNKTV3WPV50": "", scope + "/sEKNKTV3WPV5O0": "",
		"/user.slice/sEKNKTV3WPV500": "", scope + "/step_0/job_4711": "",
	} {
		if got := SlurmJob(path); got != want {
			t.Errorf("%q is of job %q, want %q", path, got, want)
		}
	}
}

func FuzzParseCgroup(f *testing.F) {
	for _, c := range containers() {
		f.Add(c.path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		containerID, pod := ParseCgroup(path)
		if containerID != "" && (len(containerID) != 64 || !strings.Contains(path, containerID)) {
			t.Errorf("%q has no container %q", path, containerID)
		}
		if job := SlurmJob(path); len(job) > 14 || !strings.Contains(path, job) {
			t.Errorf("%q has no job %q", path, job)
		}
		if pod != "" {
			said := strings.Contains(strings.ReplaceAll(path, "_", "-"), pod)
			if (len(pod) != 36 && len(pod) != 32) || !said {
				t.Errorf("%q has no pod %q", path, pod)
			}
		}
	})
}
