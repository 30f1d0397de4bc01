package session_test

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/probe/session"
)

func TestVectors(t *testing.T) {
	t.Parallel()
	every := func(n int) []int {
		list := make([]int, n)
		for i := range list {
			list[i] = i
		}
		return list
	}
	for _, tc := range []struct {
		name    string
		vectors session.Vectors
		all     int
		want    []int
	}{
		{"none", session.Vectors{Most: 4}, 0, []int{0}},
		{"fewer than none", session.Vectors{Most: 4}, -1, []int{0}},
		{"one", session.Vectors{Most: 4}, 1, []int{0}},
		{"three", session.Vectors{Most: 4}, 3, []int{0, 1, 2}},
		{"four", session.Vectors{Most: 4}, 4, []int{0, 1, 2, 3}},
		{"eight", session.Vectors{Most: 4}, 8, []int{0, 2, 4, 7}},
		{"64", session.Vectors{Most: 4}, 64, []int{0, 21, 42, 63}},
		{"nothing said", session.Vectors{}, 64, []int{0, 21, 42, 63}},
		{"as many as there can be", session.Vectors{Most: 4}, 1<<31 - 1, []int{0, 715827882, 1431655764, 2147483646}},
		{"one of 64", session.Vectors{Most: 1}, 64, []int{0}},
		{"two of 64", session.Vectors{Most: 2}, 64, []int{0, 63}},
		{"all of 64", session.Vectors{Most: 64}, 64, every(64)},
		{"more than there are", session.Vectors{Most: 512}, 64, every(64)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.vectors.Of(tc.all); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestVectorsValidate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		vectors session.Vectors
		want    string // empty if none
	}{
		{session.Vectors{Most: 1}, ""},
		{session.Vectors{}, "--notification.vectors is 0: use one from 1 to 512"},
		{session.Vectors{Most: 513}, "--notification.vectors is 513: use one from 1 to 512"},
	} {
		err := tc.vectors.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.vectors, err, tc.want)
		}
	}
}
