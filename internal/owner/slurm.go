package owner

import "strings"

// SlurmJob returns the Slurm job in the path of a cgroup, or "". It is a number, or since Slurm 26.05
// a SLUID unless CgroupJobIdPaths is set: s and 13 digits of base 32. Its parent is uid_N (version 1,
// xcgroup_create_hierarchy in plugins/cgroup/v1/xcgroup.c), or the scope of the node's slurmstepds
// (version 2, cgroup_p_step_create and _set_int_cg_ns in plugins/cgroup/v2/cgroup_v2.c).
func SlurmJob(path string) string {
	parent := ""
	for name := range strings.SplitSeq(path, "/") {
		scope := parent == "slurmstepd.scope" || strings.HasSuffix(parent, "_slurmstepd.scope")
		id, isJob := strings.CutPrefix(name, "job_")
		switch {
		case isJob && id != "" && len(id) <= 10 && strings.Trim(id, "0123456789") == "" && (scope || strings.HasPrefix(parent, "uid_")):
			return id
		case scope && len(name) == 14 && name[0] == 's' && strings.Trim(name[1:], "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == "":
			return name
		}
		parent = name
	}
	return ""
}
