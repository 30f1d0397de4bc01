package collector

// Names returns the names of all metrics.
func Names() []string {
	var names []string
	for _, d := range newMetrics().families {
		names = append(names, d.name)
	}
	return names
}
