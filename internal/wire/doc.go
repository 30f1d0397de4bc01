// Package wire is the protocol between the exporter and its children: the input of a child,
// and the lines in which it reports. Strings from outside are cleaned, and everything is
// held to its bounds, where it arrives.
package wire
