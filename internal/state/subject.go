package state

import (
	"fmt"
	"slices"
	"strings"
)

// Subject is what a failure, skip or size is about. Zero fields do not apply. The zero
// value stands for the whole probe.
type Subject struct {
	// Object is the kind of object, such as cq, a kind of memory, or the path of a
	// measurement.
	Object string `json:"object,omitempty" wire:"word"`
	// QPType is the type of a queue pair, such as rc.
	QPType string `json:"qp_type,omitempty" wire:"word"`
	// Profile is the profile of the size, or the mode of a measurement.
	Profile string `json:"profile,omitempty" wire:"word"`
	// Port is the number of the port. Zero means no port.
	Port int `json:"port,omitempty" wire:"max=256"`
	// Vector is the completion vector. Nil means no vector.
	Vector *int `json:"comp_vector,omitempty" wire:"max=65536"`
}

// String returns the subject in words, such as "rc large" or "loopback any vector 3". It
// distinguishes the subjects of a probe, and is the value of the label subject.
func (s Subject) String() string {
	object := s.Object
	if slices.Contains([]string{"cq", "srq", "qp"}, object) && s.QPType+s.Profile != "" {
		object = "" // The probe is named next to its subject.
	}
	var words []string
	for _, w := range []string{s.QPType, object, s.Profile} {
		if w != "" {
			words = append(words, w)
		}
	}
	if s.Port > 0 {
		words = append(words, fmt.Sprintf("port %d", s.Port))
	}
	if s.Vector != nil {
		words = append(words, fmt.Sprintf("vector %d", *s.Vector))
	}
	return strings.Join(words, " ")
}

// Kind returns the kind of object with the type of queue pair, such as cq or qp_rc. It is
// the value of the label object.
func (s Subject) Kind() string {
	if s.QPType == "" {
		return s.Object
	}
	return s.Object + "_" + s.QPType
}

// Equal reports whether two subjects are the same.
func (s Subject) Equal(other Subject) bool {
	sameVector := s.Vector == nil && other.Vector == nil || s.Vector != nil && other.Vector != nil && *s.Vector == *other.Vector
	s.Vector, other.Vector = nil, nil
	return sameVector && s == other
}
