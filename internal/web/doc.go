// Package web serves what the exporter knows over HTTP: the metrics, a page for
// people, the same as JSON, and whether the exporter is healthy and ready. It shows
// the latest snapshot and waits for no device. docs/reference/status-page.md tells of page and
// JSON.
//
// TLS and basic authentication are those of the exporter toolkit. With basic
// authentication every path asks for a password, /-/healthy and /-/ready too: the
// toolkit exempts none. A probe of an orchestrator must then send one, or check
// that the port accepts connections instead.
package web
