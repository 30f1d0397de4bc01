// Package health judges what is known of a host: from how the last runs on each device
// went and what they found, the objects that the kernel tracks, the limits of the
// device and what the runs left behind, to findings that say all that is wrong or soon
// will be, what it means and what to do; and from those to how each device and the host
// are, and to what is the same trouble on several devices. All judgement is here, and
// every threshold: who shows or counts it only asks.
//
// What is found is a pure function. It asks no clock and no system: what was found at a
// time carries that time, so the same state always gives the same findings. Only since
// when a finding is there, and until when it is accepted, a Judge knows by a clock.
//
// Every kind of finding has its texts in the catalogue, from which docs/reference/findings.md
// is made as well. Words that come from outside, such as names of commands and paths
// of cgroups, are made printable, and quoted where they are part of a command that
// somebody may copy.
package health
