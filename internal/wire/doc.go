// Package wire is the protocol between the exporter and its children, both halves of
// it: what a child is told on its standard input, and the lines in which it reports
// on its standard output. What arrives is validated here, whichever side reads it.
package wire
