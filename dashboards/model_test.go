package dashboards_test

import (
	"encoding/json"
	"testing"

	"rdma_exporter/dashboards"
	"rdma_exporter/test/running"
)

// The parts of a dashboard's JSON that the checks read. A row is a panel of the type row.
type (
	board struct {
		UID, Title, Description, Refresh string
		Tags                             []string
		Editable                         bool
		SchemaVersion                    int
		Links                            []link
		Templating                       struct{ List []variable }
		Annotations                      struct{ List []annotation }
		Panels                           []*panel
	}
	link struct {
		Title, URL            string
		IncludeVars, KeepTime bool
	}
	source   struct{ Type, UID string }
	variable struct {
		Type, Name        string
		Query             any
		DataSource        source
		Multi, IncludeAll bool
		AllValue          string
	}
	annotation struct {
		Name, IconColor, Expr, TextFormat string
		DataSource                        source
		BuiltIn                           int
	}
	grid  struct{ H, W, X, Y int }
	panel struct {
		ID                       int
		Type, Title, Description string
		Collapsed                bool
		DataSource               source
		GridPos                  grid
		Targets                  []target
		Transformations          []struct {
			ID      string
			Options struct {
				IndexByName                       map[string]int
				RenameByName                      map[string]string
				RowField, ColumnField, ValueField string
			}
		}
		FieldConfig struct {
			Defaults  field
			Overrides []struct {
				Properties []struct {
					ID    string
					Value json.RawMessage
				}
			}
		}
		Options *struct {
			SortBy []struct{ DisplayName string }
		}
		Panels []*panel
	}
	target struct {
		RefID, Expr, LegendFormat string
		DataSource                source
		Instant, Range            bool
	}
	threshold struct {
		Color string
		Value *float64
	}
	field struct {
		Unit       string
		Thresholds struct {
			Mode  string
			Steps []threshold
		}
		Mappings []struct{ Type string }
		Links    []link
		Custom   struct{ Filterable bool }
	}
)

// query returns the expression that a variable asks Prometheus; empty if it asks none.
func (v variable) query() string {
	m, _ := v.Query.(map[string]any)
	q, _ := m["query"].(string)
	return q
}

// declared returns the dashboards: fleet, device, resources, paths.
func declared(t *testing.T) []board {
	t.Helper()
	files := running.Must(dashboards.All())(t)
	all := make([]board, 4)
	for i, uid := range []string{"rdma-fleet", "rdma-device", "rdma-resources", "rdma-paths"} {
		if err := json.Unmarshal(files[uid], &all[i]); err != nil {
			t.Fatalf("%s: %v", uid, err)
		}
	}
	return all
}
