package collector_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"rdma_exporter/collector"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
)

// formats are those that a collector writes itself.
func formats() []expfmt.Format {
	return slices.DeleteFunc(expfmt.DefaultOpenMetricsAcceptedFormats(), func(f expfmt.Format) bool {
		return f.FormatType() == expfmt.TypeProtoText || f.FormatType() == expfmt.TypeProtoCompact
	})
}

// around is a registry of metrics that come before, among and after those of a collector.
func around() *prometheus.Registry {
	other := prometheus.NewRegistry()
	for i, name := range []string{"a_total", "rdma_exporter_build_info", "rdma_device_z", "z"} {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: "Back\\slash, \"quotes\"\nand a line.", ConstLabels: prometheus.Labels{"l": "\\\"\n"}})
		c.Add(float64(i) / 2)
		other.MustRegister(c)
	}
	return other
}

// encoded is what expfmt makes of what g gathers.
func encoded(t *testing.T, g prometheus.Gatherer, format expfmt.Format) string {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	e := expfmt.NewEncoder(&out, format)
	for _, f := range families {
		if err := e.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.(expfmt.Closer).Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestWrite makes sure that what a collector writes itself is what expfmt makes of its
// series, to the byte, of every scene and in each format.
func TestWrite(t *testing.T) {
	if len(formats()) < 4 {
		t.Fatalf("formats: %v", formats())
	}
	other := around()
	for name, s := range scenes() {
		c := s.collector()
		for _, format := range formats() {
			for range 2 { // The second time much of it is kept from the first.
				var got bytes.Buffer
				if err := c.Write(&got, other, format); err != nil {
					t.Fatalf("%s, %s: %v", name, format, err)
				}
				if want := encoded(t, c.Gatherer(other), format); got.String() != want {
					t.Errorf("%s, %s:\n%s", name, format, golden.Diff(want, got.String()))
				}
			}
		}
	}
}

// TestWriteNumbers is TestWrite of values that are written in unusual ways.
func TestWriteNumbers(t *testing.T) {
	for _, seconds := range []float64{
		0, 1, 2, 1e-9, 1.5, 999, 999_999, 999_999.5, 1e6, 1_000_001, 123_456_789, 9e9, -1, -2, -999_999, -1e6,
	} {
		r := run("sim0")
		r.Duration = time.Duration(seconds * 1e9)
		c := collectorOf(&state.Snapshot{Devices: []state.DeviceState{stateOf(r)}})
		writes(t, c, fmt.Sprint(seconds))
	}
	for _, n := range []int64{math.MaxInt64, math.MinInt64, 1 << 53, 1e15, 1e6 - 1, -1} {
		r := run("sim0")
		r.Info.Limits[0].Value = n
		r.Probes[0].CQs[0].Actual = n
		writes(t, collectorOf(&state.Snapshot{Devices: []state.DeviceState{stateOf(r)}}), fmt.Sprint(n))
	}
}

// writes is TestWrite of one collector.
func writes(t *testing.T, c *collector.Collector, name string) {
	t.Helper()
	for _, format := range formats() {
		var got bytes.Buffer
		if err := c.Write(&got, prometheus.NewRegistry(), format); err != nil {
			t.Fatal(err)
		}
		if want := encoded(t, c.Gatherer(prometheus.NewRegistry()), format); got.String() != want {
			t.Errorf("%s, %s:\n%s", name, format, golden.Diff(want, got.String()))
		}
	}
}

// full takes so many bytes.
type full struct{ left int }

// Write implements io.Writer.
func (f *full) Write(b []byte) (int, error) {
	n := min(len(b), f.left)
	f.left -= n
	if n < len(b) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// TestWriteFails makes sure that nothing is written of what cannot be written whole, and
// that the end of a writer is told.
func TestWriteFails(t *testing.T) {
	snapshot, runs := host(1)
	c := collectorOf(snapshot, runs...)
	broken := errors.New("broken")
	name := "odd"
	for _, tc := range []struct {
		name   string
		other  prometheus.Gatherer
		format expfmt.Format
		want   error
	}{
		{"protobuf for people", prometheus.NewRegistry(), expfmt.NewFormat(expfmt.TypeProtoText), errors.ErrUnsupported},
		{"gather", prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, broken }), expfmt.NewFormat(expfmt.TypeTextPlain), broken},
		{"encode", prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return []*dto.MetricFamily{{Name: &name}}, nil }), expfmt.NewFormat(expfmt.TypeTextPlain), nil},
	} {
		var out bytes.Buffer
		err := c.Write(&out, tc.other, tc.format)
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) || out.Len() > 0 {
			t.Errorf("%s: %d bytes, error %v", tc.name, out.Len(), err)
		}
	}
	if err := c.Write(&full{left: 1000}, prometheus.NewRegistry(), expfmt.NewFormat(expfmt.TypeTextPlain)); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a writer that is full: %v", err)
	}
}

// TestWriteTakesLittle makes sure that a scrape of what has not changed allocates next to
// nothing, however many series there are.
func TestWriteTakesLittle(t *testing.T) {
	snapshot, runs := host(16)
	c := collectorOf(snapshot, runs...)
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	write := func() {
		if err := c.Write(io.Discard, prometheus.NewRegistry(), format); err != nil {
			t.Fatal(err)
		}
	}
	// There are some 400 series of each device.
	if got := testing.AllocsPerRun(20, write); got > 450 {
		t.Errorf("a scrape makes %.0f objects", got)
	}
}
