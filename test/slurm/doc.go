// Package slurm runs the real slurmctld, slurmd and munged of Debian as one node on
// 127.0.0.1, without systemd and cgroups, with the scripts of deploy/slurm and the built
// exporter on simulated devices. `make test-slurm` installs what it needs.
package slurm
