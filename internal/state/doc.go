// Package report holds the plain types that the rooms of the exporter hand each
// other: what one run of the probes on one device found, and what is known of
// all devices of the host at one moment. It imports nothing of the module.
//
// All values are data without behaviour that matters: they may be copied, and
// once handed on nobody changes them.
package state
