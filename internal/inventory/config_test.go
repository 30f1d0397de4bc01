package inventory_test

import (
	"strings"
	"testing"

	"rdma_exporter/internal/inventory"
)

// The bounds belong to what is valid.
func TestConfig(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*inventory.Config)
		want   string
	}{
		"defaults":       {func(*inventory.Config) {}, ""},
		"no objects":     {func(c *inventory.Config) { c.MaxObjects = 0 }, ""},
		"too few":        {func(c *inventory.Config) { c.MaxObjects = -1 }, "--inventory.max-objects is -1"},
		"no owners":      {func(c *inventory.Config) { c.Owners = 0 }, ""},
		"most owners":    {func(c *inventory.Config) { c.Owners = 100 }, ""},
		"too few owners": {func(c *inventory.Config) { c.Owners = -1 }, "--inventory.owners is -1"},
		"too many":       {func(c *inventory.Config) { c.Owners = 101 }, "--inventory.owners is 101"},
	} {
		t.Run(name, func(t *testing.T) {
			c := inventory.DefaultConfig()
			tc.change(&c)
			err := c.Validate()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
