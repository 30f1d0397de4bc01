// Package collector turns reports into metrics. Gauges are read from the latest
// snapshot at each scrape; counters and histograms are fed with each finished
// run. A scrape does no I/O and waits for no device.
//
// Every metric is declared once, in declarations; what is exposed, docs/reference/metrics.md
// and the tests follow from there.
//
// What a run says comes from a child process that may be out of its mind, so it
// is never trusted to be well formed: label values are made valid UTF-8, of
// series told twice the last wins, and the number of series of one device is
// bounded.
package collector
