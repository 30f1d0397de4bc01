package terminal

import (
	"strings"

	"rdma_exporter/internal/text"
)

// tied returns words between which no line ends, as a number and its unit.
func tied(words string) string { return strings.ReplaceAll(words, " ", tie) }

func duration(s float64) string { return tied(text.Seconds(s)) }

func bytes(n int64) string { return tied(text.Bytes(n)) }

func percent(used, limit int64) string { return tied(text.Percent(used, limit)) }

// part returns used as a part of limit; more than all is possible. Nothing of
// nothing is nothing, and something of nothing is all.
func part(used, limit int64) float64 {
	switch {
	case used <= 0:
		return 0
	case limit <= 0:
		return 1
	default:
		return float64(used) / float64(limit)
	}
}
