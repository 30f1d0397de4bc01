package collector

// Names returns the names of all metrics.
func Names() []string {
	var names []string
	for _, d := range newTable(everything()).families {
		names = append(names, d.name)
	}
	return names
}

func everything() Choice {
	c := make(Choice)
	for _, p := range Parts() {
		c[p.Name] = true
	}
	return c
}

// Everything returns the choice of every collector.
func Everything() Choice { return everything() }
