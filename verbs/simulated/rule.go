package simulated

import (
	"fmt"
	"math/bits"
	"slices"

	"go.yaml.in/yaml/v3"
)

// The names of the steps of rounding rules.
const (
	// RuleExact gives what was asked for.
	RuleExact = "exact"
	// RulePowerOfTwo gives the next power of two.
	RulePowerOfTwo = "power_of_two"
	// RulePowerOfTwoMinusOne gives the next power of two less one: 16 becomes 31.
	RulePowerOfTwoMinusOne = "power_of_two_minus_one"
	// RuleMultipleOf gives the next multiple of Step.N.
	RuleMultipleOf = "multiple_of"
	// RulePlus adds Step.N, which may be negative.
	RulePlus = "plus"
	// RuleTimes multiplies by Step.N.
	RuleTimes = "times"
	// RuleAtLeast and RuleAtMost give Step.N for less, or for more, than that.
	RuleAtLeast = "at_least"
	RuleAtMost  = "at_most"
	// RuleAlways gives Step.N, even if nothing was asked for.
	RuleAlways = "always"
)

// stepNames are the steps that stand alone, and numberedSteps those that have a number.
func stepNames() []string { return []string{RuleExact, RulePowerOfTwo, RulePowerOfTwoMinusOne} }

func numberedSteps() []string {
	return []string{RuleMultipleOf, RulePlus, RuleTimes, RuleAtLeast, RuleAtMost, RuleAlways}
}

// maxStep keeps the arithmetic of Rule.Apply from overflowing.
const maxStep = 1 << 20

// Rule says to which size a device rounds one that it was asked for: the steps that it
// takes, in their order. In YAML it is a step or a list of them, and a step is the name
// alone, or {multiple_of: N}. A Rule without steps is RuleExact.
type Rule []Step

// Step is a step of a Rule.
type Step struct {
	// Name is the name of the step.
	Name string
	// N belongs to the steps that have a number.
	N int
}

// Apply rounds n, which must fit a C int. Nothing, 0, stays nothing, but for
// RuleAlways; no result is below 0.
func (r Rule) Apply(n int) int {
	for _, s := range r {
		n = s.apply(n)
	}
	return n
}

func (s Step) apply(n int) int {
	if s.Name == RuleAlways {
		return s.N
	}
	if n <= 0 || n > 1<<30 {
		return n
	}
	switch s.Name {
	case RulePowerOfTwo:
		return 1 << bits.Len(uint(n-1))
	case RulePowerOfTwoMinusOne:
		return 1<<bits.Len(uint(n)) - 1
	case RuleMultipleOf:
		if s.N > 1 && s.N <= maxStep {
			return (n-1)/s.N*s.N + s.N
		}
	case RulePlus:
		return max(0, n+s.N)
	case RuleTimes:
		return n * s.N
	case RuleAtLeast:
		return max(n, s.N)
	case RuleAtMost:
		return min(n, s.N)
	}
	return n
}

// ReportedRule says to which size a device rounds, and which size a later query
// reports, which some devices have differ. In YAML it is a Rule for all, or {created:
// Rule, queried: Rule, usable: Rule}, the last two of which can be left out.
type ReportedRule struct {
	// Created is the size that creation writes back.
	Created Rule
	// Queried is the size that the query reports, if there is one.
	Queried Rule
	// Usable is the size that the object has; without steps, the larger of the two.
	Usable Rule
}

// Rounding are the rules of one device. No size is rounded beyond the device's
// limit.
type Rounding struct {
	// CQEntries is that of the entries of a CQ.
	CQEntries ReportedRule `yaml:"cq_entries"`
	// SRQWR and SRQSGE are those of an SRQ.
	SRQWR  ReportedRule `yaml:"srq_wr"`
	SRQSGE ReportedRule `yaml:"srq_sge"`
	// QPWR, QPSGE and QPInline are those of a QP, for both of its queues.
	QPWR     ReportedRule `yaml:"qp_wr"`
	QPSGE    ReportedRule `yaml:"qp_sge"`
	QPInline ReportedRule `yaml:"qp_inline"`
	// QPRecvWR and QPRecvSGE, if not nil, stand in for QPWR and QPSGE for the receive
	// queue.
	QPRecvWR  *ReportedRule `yaml:"qp_recv_wr,omitempty"`
	QPRecvSGE *ReportedRule `yaml:"qp_recv_sge,omitempty"`
	// QPInlineSharesSGE is for devices on which the scatter/gather elements of a
	// send and its inline data take the same place in the work request: both grow
	// to what fits into the larger of the two, at 16 bytes an element.
	QPInlineSharesSGE bool `yaml:"qp_inline_shares_sge"`
}

// recv returns the rules of a QP's receive queue.
func (r *Rounding) recv() (wr, sge ReportedRule) {
	wr, sge = r.QPWR, r.QPSGE
	if r.QPRecvWR != nil {
		wr = *r.QPRecvWR
	}
	if r.QPRecvSGE != nil {
		sge = *r.QPRecvSGE
	}
	return wr, sge
}

// clone returns a copy that shares nothing with r.
func (r Rounding) clone() Rounding {
	for _, p := range []*ReportedRule{&r.CQEntries, &r.SRQWR, &r.SRQSGE, &r.QPWR, &r.QPSGE, &r.QPInline} {
		*p = p.clone()
	}
	for _, p := range []**ReportedRule{&r.QPRecvWR, &r.QPRecvSGE} {
		if *p != nil {
			c := (*p).clone()
			*p = &c
		}
	}
	return r
}

func (r ReportedRule) clone() ReportedRule {
	return ReportedRule{slices.Clone(r.Created), slices.Clone(r.Queried), slices.Clone(r.Usable)}
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (r *Rule) UnmarshalYAML(n *yaml.Node) error {
	n = resolve(n)
	steps := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		steps = n.Content
	}
	*r = nil
	for _, step := range steps {
		var s Step
		step = resolve(step)
		switch {
		case step.Kind == yaml.ScalarNode:
			s.Name = step.Value
		case step.Kind == yaml.MappingNode && len(step.Content) == 2 && slices.Contains(numberedSteps(), step.Content[0].Value):
			s.Name = step.Content[0].Value
			if resolve(step.Content[1]).Decode(&s.N) != nil {
				return decodeError(step.Content[1], s.Name+" takes a whole number")
			}
		default:
			return decodeError(step, "a rounding rule is a name or {multiple_of: N} or the like, or a list of these")
		}
		*r = append(*r, s)
	}
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (r Rule) MarshalYAML() (any, error) {
	var steps []any
	for _, s := range r {
		if slices.Contains(numberedSteps(), s.Name) {
			steps = append(steps, map[string]int{s.Name: s.N})
		} else {
			steps = append(steps, s.Name)
		}
	}
	switch len(steps) {
	case 0:
		return RuleExact, nil
	case 1:
		return steps[0], nil
	}
	return steps, nil
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (r *ReportedRule) UnmarshalYAML(n *yaml.Node) error {
	n = resolve(n)
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 || slices.Contains(numberedSteps(), n.Content[0].Value) {
		var all Rule
		if err := all.UnmarshalYAML(n); err != nil {
			return err
		}
		*r = ReportedRule{Created: all, Queried: slices.Clone(all)}
		return nil
	}
	const want = "a rounding rule that is reported otherwise is {created: RULE, queried: RULE, usable: RULE}"
	*r = ReportedRule{}
	to := map[string]*Rule{"created": &r.Created, "queried": &r.Queried, "usable": &r.Usable}
	for i := 0; i+1 < len(n.Content); i += 2 {
		rule := to[n.Content[i].Value]
		if rule == nil || *rule != nil {
			return decodeError(n.Content[i], want)
		}
		if err := rule.UnmarshalYAML(n.Content[i+1]); err != nil {
			return err
		}
	}
	if r.Created == nil {
		return decodeError(n, want)
	}
	if r.Queried == nil {
		r.Queried = slices.Clone(r.Created)
	}
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (r ReportedRule) MarshalYAML() (any, error) {
	if slices.Equal(r.Created, r.Queried) && len(r.Usable) == 0 {
		return r.Created, nil
	}
	return struct {
		Created Rule `yaml:"created"`
		Queried Rule `yaml:"queried"`
		Usable  Rule `yaml:"usable,omitempty"`
	}{r.Created, r.Queried, r.Usable}, nil
}

// decodeError is an error that the decoder collects instead of stopping.
func decodeError(n *yaml.Node, message string) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", n.Line, message)}}
}
