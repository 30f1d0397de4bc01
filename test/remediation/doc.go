// Package remediation lets programs that take nodes out of service read the verdict of the built
// exporter, which has simulated devices.
//
// Slurm is Debian's slurmctld, slurmd and munged with the scripts of deploy/slurm. They are one node
// on 127.0.0.1, without systemd and cgroups. node-problem-detector is the real one with
// deploy/npd/rdma.json. `make test-slurm` and `make test-npd` install what they need.
package remediation
