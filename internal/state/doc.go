// Package state holds the plain types that the packages of the exporter share: the result of
// a run on one device, and the state of all devices of the host at one moment. It has no
// thresholds and imports nothing of the module.
//
// Values may be copied. Once they are handed on, nothing may modify them.
package state
