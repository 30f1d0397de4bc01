package dashboards

import "strconv"

// Colours that people with any kind of colour vision tell apart (after Okabe and
// Ito). No state is told by its colour alone: there is a text or a figure with it.
const (
	good     = "#0072B2" // blue
	warning  = "#E69F00" // orange
	critical = "#D55E00" // vermilion
	unknown  = "#8A8A8A" // grey
	neutral  = "#56B4E9" // sky blue
)

// Units, as Grafana names them.
const (
	seconds   = "s"
	dateTime  = "dateTimeAsIso"
	octets    = "bytes"
	bits      = "bps"
	packets   = "pps"
	celsius   = "celsius"
	count     = "short"
	fraction  = "percentunit"
	perMinute = "cpm"
	perSecond = "cps"
	perHour   = "suffix: /h"
	factor    = "suffix: ×"
	words     = "string"
)

// plain are the thresholds of what has no good or bad values.
func plain() Thresholds {
	return Thresholds{"absolute", []Threshold{{Color: neutral}}}
}

// anyIs gives a colour to all that is above 0.
func anyIs(colour string) Thresholds {
	return rising(step{1e-9, colour})
}

// step is a value from which on a colour holds.
type step struct {
	value  float64
	colour string
}

// rising is good below the first step.
func rising(steps ...step) Thresholds {
	return thresholds(good, steps)
}

// falling is critical below the first value, a warning below the second.
func falling(criticalBelow, warningBelow float64) Thresholds {
	return thresholds(critical, []step{{criticalBelow, warning}, {warningBelow, good}})
}

func thresholds(first string, steps []step) Thresholds {
	t := Thresholds{"absolute", []Threshold{{Color: first}}}
	for _, s := range steps {
		t.Steps = append(t.Steps, Threshold{s.colour, &s.value})
	}
	return t
}

// text stands for a value.
type text struct {
	value  float64
	text   string
	colour string
}

// texts shows values as texts.
func texts(list ...text) []Mapping {
	options := make(map[string]Mapped, len(list))
	for i, t := range list {
		options[strconv.FormatFloat(t.value, 'g', -1, 64)] = Mapped{t.text, t.colour, i}
	}
	return []Mapping{{"value", options}}
}

// noData is grey: otherwise Grafana gives what is not known the colour of the lowest
// values, which mostly is that of what is well.
func noData() Mapping {
	return Mapping{"special", SpecialMapping{"null", Mapped{"No data", unknown, 9}}}
}

// none shows 0 as "none", and leaves other figures as they are.
func none() []Mapping {
	return texts(text{0, "none", good})
}

// okOr shows 1 as OK, and 0 as what it is otherwise.
func okOr(otherwise string) []Mapping {
	return texts(text{1, "OK", good}, text{0, otherwise, critical})
}

// stuckIs shows 1 as "STUCK", and 0 as "no".
func stuckIs() []Mapping {
	return texts(text{0, "no", good}, text{1, "STUCK", critical})
}

// portStates shows the states of a port, numbered as InfiniBand has them.
func portStates() []Mapping {
	var list []text
	for i, name := range portStateNames() {
		colour := warning
		switch name {
		case "active":
			colour = good
		case "down":
			colour = critical
		}
		list = append(list, text{float64(i), name, colour})
	}
	return texts(list...)
}

// portStateNames returns the states of a port in the order of their numbers.
func portStateNames() []string {
	return []string{"nop", "down", "init", "armed", "active", "active_defer"}
}
