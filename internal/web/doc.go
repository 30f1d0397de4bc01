// Package web serves the metrics, the status page, its JSON, and the health and readiness of
// the exporter over HTTP. It shows the latest snapshot and waits for no device, except where peers ask.
//
// TLS and basic authentication are those of the exporter toolkit, which exempts no path:
// health checks need the password too, or must check that the port accepts connections.
package web
