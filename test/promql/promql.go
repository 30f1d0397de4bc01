// Package promql lists the names in an expression of PromQL, for tests of rules and
// dashboards.
package promql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Expression holds the names in an expression.
type Expression struct {
	Selectors []Selector
	// Grouped are the labels of by and group_left, and Labels those of without, on and
	// ignoring as well.
	Grouped, Labels []string
	// Joins are the labels of each on, and Raw the right sides of joins that need one
	// series and do not aggregate.
	Joins [][]string
	Raw   []string
	// Made are the labels that label_replace makes.
	Made []string
	// Windows are the ranges, and Functions includes aggregations.
	Windows   []Window
	Functions []string
}

// Selector is a metric with its matchers.
type Selector struct {
	Metric   string
	Matchers []Matcher
}

// Matcher is a matcher of a label.
type Matcher struct{ Label, Op, Value string }

// Window is a range with the function that reads it.
type Window struct{ Function, Span string }

// Metrics returns the metrics of the expression.
func (e *Expression) Metrics() []string {
	var names []string
	for _, s := range e.Selectors {
		names = append(names, s.Metric)
	}
	return names
}

// durations stand for the durations that Grafana fills in.
func durations() map[string]string {
	return map[string]string{"$__rate_interval": "61001ms", "$__range": "3601001ms", "$__interval": "11001ms"}
}

// Parse parses an expression, which may have variables of Grafana.
func Parse(text string) (Expression, error) {
	var e Expression
	if text == "" {
		return e, nil
	}
	for variable, duration := range durations() {
		text = strings.ReplaceAll(text, variable, duration)
	}
	text = regexp.MustCompile(`\(\$\w+,`).ReplaceAllString(text, "(5,")
	root, err := parser.ParseExpr(text)
	if err != nil {
		return e, fmt.Errorf("parse %s: %w", text, err)
	}
	parser.Inspect(root, func(node parser.Node, path []parser.Node) error {
		e.add(node, path)
		return nil
	})
	return e, nil
}

func (e *Expression) add(node parser.Node, path []parser.Node) {
	switch n := node.(type) {
	case *parser.VectorSelector:
		s := Selector{Metric: n.Name}
		for _, m := range n.LabelMatchers {
			if m.Name != model.MetricNameLabel {
				s.Matchers = append(s.Matchers, Matcher{m.Name, m.Type.String(), m.Value})
			}
		}
		e.Selectors = append(e.Selectors, s)
	case *parser.MatrixSelector:
		e.Windows = append(e.Windows, Window{function(path), span(model.Duration(n.Range).String())})
	case *parser.SubqueryExpr:
		e.Windows = append(e.Windows, Window{function(path), span(model.Duration(n.Range).String())})
	case *parser.AggregateExpr:
		e.Functions = append(e.Functions, n.Op.String())
		e.Labels = append(e.Labels, n.Grouping...)
		if !n.Without {
			e.Grouped = append(e.Grouped, n.Grouping...)
		}
	case *parser.Call:
		e.Functions = append(e.Functions, n.Func.Name)
		if n.Func.Name == "label_replace" {
			if made, ok := n.Args[1].(*parser.StringLiteral); ok {
				e.Made = append(e.Made, made.Val)
			}
		}
	case *parser.BinaryExpr:
		m := n.VectorMatching
		if m == nil {
			return
		}
		e.Labels = append(append(e.Labels, m.MatchingLabels...), m.Include...)
		e.Grouped = append(e.Grouped, m.Include...)
		if m.On {
			e.Joins = append(e.Joins, m.MatchingLabels)
			if !n.Op.IsSetOperator() && !aggregated(n.RHS) {
				e.Raw = append(e.Raw, n.RHS.String())
			}
		}
	}
}

// function returns the innermost function or aggregation around a node.
func function(path []parser.Node) string {
	for _, n := range slices.Backward(path) {
		if call, ok := n.(*parser.Call); ok {
			return call.Func.Name
		}
	}
	return ""
}

// span returns the variable that a duration stands for, or the duration.
func span(duration string) string {
	for variable, text := range durations() {
		if d, err := model.ParseDuration(text); err == nil && d.String() == duration {
			return variable
		}
	}
	return duration
}

// aggregated reports whether an expression has one series for each set of labels.
func aggregated(e parser.Expr) bool {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return aggregated(e.Expr)
	case *parser.BinaryExpr:
		return aggregated(e.LHS)
	case *parser.AggregateExpr:
		return e.Op != parser.TOPK && e.Op != parser.BOTTOMK
	default:
		return false
	}
}
