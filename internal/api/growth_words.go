package api

import (
	"fmt"
	"time"

	"rdma_exporter/internal/text"
)

// Words says how many there were and are, and how fast that is: 400 → 1000 in 58 min, 10 a
// minute.
func (g *Growth) Words() string {
	return fmt.Sprintf("%s → %s in %s, %s", text.Number(g.From), text.Number(g.To), text.Age(duration(g.Over)), text.Pace(g.PerHour))
}

// Until says how long it takes until the limit of the device.
func (g *Growth) Until() string {
	if g.UntilLimit == nil {
		return "no limit reported"
	}
	return text.Until(duration(*g.UntilLimit))
}

// Way says whether they go up and down, and whether it is a finding.
func (g *Growth) Way() string {
	switch {
	case g.Steady && g.OnlyGrows:
		return "all the time, never fewer"
	case g.Steady:
		return "all the time"
	case g.OnlyGrows:
		return "never fewer"
	default:
		return "up and down"
	}
}

// duration returns a number of seconds as a duration; the longest for one that is longer.
func duration(n float64) time.Duration {
	return time.Duration(min(n, text.Long.Seconds()) * float64(time.Second))
}
