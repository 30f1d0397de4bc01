package simulated

import (
	"fmt"
	"math/bits"

	"go.yaml.in/yaml/v3"
)

// The names of the rounding rules.
const (
	// RuleExact gives what was asked for.
	RuleExact = "exact"
	// RulePowerOfTwo gives the next power of two.
	RulePowerOfTwo = "power_of_two"
	// RulePowerOfTwoMinusOne gives the next power of two less one: 16 becomes 31.
	RulePowerOfTwoMinusOne = "power_of_two_minus_one"
	// RuleMultipleOf gives the next multiple of Rule.Multiple.
	RuleMultipleOf = "multiple_of"
)

// maxMultiple keeps the arithmetic of Rule.Apply from overflowing.
const maxMultiple = 1 << 20

// Rule says to which size a device rounds one that it was asked for. In YAML it
// is the name alone, or {multiple_of: N}. The zero Rule is RuleExact.
type Rule struct {
	// Name is the name of the rule.
	Name string
	// Multiple belongs to RuleMultipleOf.
	Multiple int
}

// Apply rounds n, which must fit a C int. The result is never smaller than n.
// Nothing, 0, stays nothing.
func (r Rule) Apply(n int) int {
	if n <= 0 || n > 1<<30 {
		return n
	}
	switch r.Name {
	case RulePowerOfTwo:
		return 1 << bits.Len(uint(n-1))
	case RulePowerOfTwoMinusOne:
		return 1<<bits.Len(uint(n)) - 1
	case RuleMultipleOf:
		if r.Multiple > 1 && r.Multiple <= maxMultiple {
			return (n-1)/r.Multiple*r.Multiple + r.Multiple
		}
	}
	return n
}

// ReportedRule says to which size a device rounds, and which size a later query
// reports, which some devices have differ. The object has the larger of the two.
// In YAML it is a Rule for both, or {created: Rule, queried: Rule}.
type ReportedRule struct {
	// Created is the size that creation writes back.
	Created Rule
	// Queried is the size that the query reports.
	Queried Rule
}

// Rounding are the rules of one device. No size is rounded beyond the device's
// limit.
type Rounding struct {
	// CQEntries is that of the entries of a CQ.
	CQEntries Rule `yaml:"cq_entries"`
	// SRQWR and SRQSGE are those of an SRQ.
	SRQWR  ReportedRule `yaml:"srq_wr"`
	SRQSGE ReportedRule `yaml:"srq_sge"`
	// QPWR, QPSGE and QPInline are those of a QP, for both of its queues.
	QPWR     ReportedRule `yaml:"qp_wr"`
	QPSGE    ReportedRule `yaml:"qp_sge"`
	QPInline ReportedRule `yaml:"qp_inline"`
	// QPInlineSharesSGE is for devices on which the scatter/gather elements of a
	// send and its inline data take the same place in the work request: both grow
	// to what fits into the larger of the two, at 16 bytes an element.
	QPInlineSharesSGE bool `yaml:"qp_inline_shares_sge"`
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (r *Rule) UnmarshalYAML(n *yaml.Node) error {
	n = resolve(n)
	if n.Kind == yaml.ScalarNode {
		*r = Rule{Name: n.Value}
		return nil
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[0].Value != RuleMultipleOf {
		return decodeError(n, "a rounding rule is a name or {multiple_of: N}")
	}
	*r = Rule{Name: RuleMultipleOf}
	if resolve(n.Content[1]).Decode(&r.Multiple) != nil {
		return decodeError(n.Content[1], "multiple_of takes a whole number")
	}
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (r Rule) MarshalYAML() (any, error) {
	switch r.Name {
	case "":
		return RuleExact, nil
	case RuleMultipleOf:
		return map[string]int{RuleMultipleOf: r.Multiple}, nil
	}
	return r.Name, nil
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (r *ReportedRule) UnmarshalYAML(n *yaml.Node) error {
	n = resolve(n)
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 || n.Content[0].Value == RuleMultipleOf {
		var both Rule
		if err := both.UnmarshalYAML(n); err != nil {
			return err
		}
		*r = ReportedRule{Created: both, Queried: both}
		return nil
	}
	const want = "a rounding rule that queries see otherwise is {created: RULE, queried: RULE}"
	if len(n.Content) != 4 {
		return decodeError(n, want)
	}
	*r = ReportedRule{}
	for i := 0; i < len(n.Content); i += 2 {
		var rule Rule
		if err := rule.UnmarshalYAML(n.Content[i+1]); err != nil {
			return err
		}
		switch n.Content[i].Value {
		case "created":
			r.Created = rule
		case "queried":
			r.Queried = rule
		default:
			return decodeError(n.Content[i], want)
		}
	}
	if n.Content[0].Value == n.Content[2].Value {
		return decodeError(n, want)
	}
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (r ReportedRule) MarshalYAML() (any, error) {
	if r.Created == r.Queried {
		return r.Created, nil
	}
	return struct {
		Created Rule `yaml:"created"`
		Queried Rule `yaml:"queried"`
	}{r.Created, r.Queried}, nil
}

// decodeError is an error that the decoder collects instead of stopping.
func decodeError(n *yaml.Node, message string) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", n.Line, message)}}
}
