// Package collector turns state and findings into metrics. It reads gauges from the latest
// snapshot at each scrape, and counts finished runs in counters and histograms. A scrape
// does no I/O and waits for no device.
//
// It does not trust the reports of child processes: label values are made valid UTF-8, the
// last of two equal series wins, and the series of a device are bounded.
package collector
