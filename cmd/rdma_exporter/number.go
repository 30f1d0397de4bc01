package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/alecthomas/kingpin/v2"
)

// wholeNumber returns the value of a flag that takes a whole number. kingpin's own takes
// 1.5 for 1.
func wholeNumber[T int | int64](to *T) kingpin.Value { return number[T]{to} }

// number is a whole number, as the value of a flag.
type number[T int | int64] struct{ to *T }

// Set implements kingpin.Value.
func (n number[T]) Set(s string) error {
	v, err := strconv.ParseInt(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || int64(T(v)) != v:
		return fmt.Errorf("%q is too large", s)
	case err != nil:
		return fmt.Errorf("%q is not a whole number: use digits only", s)
	}
	*n.to = T(v)
	return nil
}

// String implements kingpin.Value.
func (n number[T]) String() string { return fmt.Sprint(*n.to) }
