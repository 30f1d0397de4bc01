// Package terminal writes the state of the host's devices as text, for terminals, mails and
// logs, and shows the progress of an audit.
//
// Text from devices, drivers and other processes is written without control characters.
package terminal
