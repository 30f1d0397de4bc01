// Package state holds the plain types that the rooms of the exporter hand each
// other: what one run of the probes on one device found, and what is known of
// all devices of the host at one moment; and what plainly follows from them. What that
// is worth is judged elsewhere. It imports nothing of the module.
//
// All values are data without behaviour that matters: they may be copied, and
// once handed on nobody changes them.
package state
