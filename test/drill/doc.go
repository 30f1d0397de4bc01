// Package drill breaks simulated nodes in the ways in which fleets break, all at once, and has
// a real Prometheus with the shipped rules raise alerts. It prints a table: which alerts each
// trouble raised, after how long, their text, and next to it what the status page and the audit
// say. One trouble raises one alert, however many devices and nodes it hits.
//
// Each trouble has a cluster of its own, by the label of that name. The nodes of all clusters
// are called node1, node2 and so on, so that a rule that mixes clusters up shows.
//
// All has the build tag drill; make drill runs it. DRILL_SCALE=10 divides intervals, and how
// long alerts wait, by ten.
package drill
