// Package health evaluates the state of a host. It turns the results of runs, the kernel's object tables, the
// device limits and the hardware readings into findings, grades each device and the host, and groups the same
// findings of several devices into issues. All thresholds are here. Pages, reports and metrics only show the result.
//
// Finding problems is a pure function without a clock: the same state always gives the same findings. Only the
// Evaluator uses a clock, for first-seen times and for the expiry of acceptances.
//
// Each kind of finding has its texts in the catalogue, from which docs/reference/findings.md is generated. Strings
// from outside, such as commands and cgroup paths, are made printable, and quoted inside commands.
package health
