package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Colours that people with any kind of colour vision can distinguish (after Okabe and Ito). Each state has a text or
// a number as well.
const (
	good     = "#0072B2" // blue
	warning  = "#E69F00" // orange
	critical = "#D55E00" // vermilion
	unknown  = "#8A8A8A" // grey
	neutral  = "#56B4E9" // sky blue
)

const (
	seconds   = "s"
	dateTime  = "dateTimeAsIso"
	octets    = "bytes"
	bits      = "bps"
	packets   = "pps"
	celsius   = "celsius"
	count     = "short"
	fraction  = "percentunit"
	perSecond = "ops"
	perHour   = "suffix: /h"
	factor    = "suffix: ×"
	words     = "string"
)

func plain() dashboard.ThresholdsConfig { return thresholds(neutral, nil) }

func anyIs(colour string) dashboard.ThresholdsConfig {
	return rising(step{1e-9, colour})
}

type step struct {
	value  float64
	colour string
}

// rising is good below the first step.
func rising(steps ...step) dashboard.ThresholdsConfig {
	return thresholds(good, steps)
}

func overdue() dashboard.ThresholdsConfig { return rising(step{600, warning}, step{1800, critical}) }

// slower is for latencies as multiples of the usual one.
func slower() dashboard.ThresholdsConfig { return rising(step{3, warning}, step{10, critical}) }

// falling is critical below the first value, a warning below the second.
func falling(criticalBelow, warningBelow float64) dashboard.ThresholdsConfig {
	return thresholds(critical, []step{{criticalBelow, warning}, {warningBelow, good}})
}

func thresholds(first string, steps []step) dashboard.ThresholdsConfig {
	t := dashboard.ThresholdsConfig{Mode: dashboard.ThresholdsModeAbsolute, Steps: []dashboard.Threshold{{Color: first}}}
	for _, s := range steps {
		t.Steps = append(t.Steps, dashboard.Threshold{Color: s.colour, Value: &s.value})
	}
	return t
}

type text struct{ value, text, colour string }

func texts(list ...text) []dashboard.ValueMapping {
	options := make(map[string]dashboard.ValueMappingResult, len(list))
	for i, t := range list {
		options[t.value] = mapped(t, i)
	}
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: options}}}
}

func mapped(t text, index int) dashboard.ValueMappingResult {
	return dashboard.ValueMappingResult{Text: &t.text, Color: &t.colour, Index: new(int32(index))}
}

// noData is grey. Without it, Grafana gives an unknown value the colour of the lowest values, which is usually that
// of a healthy device.
func noData() dashboard.ValueMapping {
	return dashboard.ValueMapping{SpecialValueMap: &dashboard.SpecialValueMap{
		Type:    dashboard.MappingTypeSpecialValue,
		Options: dashboard.DashboardSpecialValueMapOptions{Match: dashboard.SpecialValueMatchNull, Result: mapped(text{"", "No data", unknown}, 9)},
	}}
}

// none shows 0 as "none", and leaves other values as they are.
func none() []dashboard.ValueMapping {
	return texts(text{"0", "none", good})
}

func okOr(otherwise string) []dashboard.ValueMapping {
	return texts(text{"1", "OK", good}, text{"0", otherwise, critical})
}

func upOrDown() []dashboard.ValueMapping {
	return texts(text{"1", "up", good}, text{"0", "DOWN", critical})
}

// stuckOrNot shows 1 as critical, and 0 as "no".
func stuckOrNot() []dashboard.ValueMapping {
	return texts(text{"0", "no", good}, text{"1", "STUCK", critical})
}

func physicalStates() []dashboard.ValueMapping {
	return texts(
		text{"1", "sleep", warning}, text{"2", "polling", warning}, text{"3", "disabled", warning}, text{"4", "training", warning},
		text{"5", "link up", good}, text{"6", "error recovery", warning}, text{"7", "phy test", warning},
	)
}

func portStates() []dashboard.ValueMapping {
	return texts(
		text{"0", "nop", warning}, text{"1", "down", critical}, text{"2", "init", warning}, text{"3", "armed", warning},
		text{"4", "active", good}, text{"5", "active_defer", warning},
	)
}
