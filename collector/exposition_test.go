package collector_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"rdma_exporter/collector"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
)

// formats are those that a collector writes itself, with each way to escape names.
func formats() []expfmt.Format {
	var all []expfmt.Format
	for _, f := range expfmt.DefaultOpenMetricsAcceptedFormats() {
		if f.FormatType() == expfmt.TypeProtoText || f.FormatType() == expfmt.TypeProtoCompact {
			continue
		}
		for _, escaping := range []string{model.AllowUTF8, model.EscapeUnderscores, model.EscapeDots, model.EscapeValues} {
			all = append(all, f+"; escaping="+expfmt.Format(escaping))
		}
	}
	return all
}

// around is a registry of metrics that come before, among and after those of a collector,
// and have what those do not: exemplars, quantiles, no type, names that are escaped.
func around() *prometheus.Registry {
	other := prometheus.NewRegistry()
	labels := prometheus.Labels{"l": "\\\"\n", "l.é": "v"}
	const help = "Back\\slash, \"quotes\"\nand a line."
	exemplar := prometheus.Labels{"trace": "\\\"\n"}
	for i, name := range []string{"a_total", "rdma_exporter_build_info", "rdma_device_z", "rdma.device.é", "z"} {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
		c.(prometheus.ExemplarAdder).AddWithExemplar(float64(i)/2, exemplar)
		other.MustRegister(c)
	}
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "rdma_device_hist", Help: help, ConstLabels: labels, NativeHistogramBucketFactor: 2})
	h.(prometheus.ExemplarObserver).ObserveWithExemplar(0.3, exemplar)
	s := prometheus.NewSummary(prometheus.SummaryOpts{Name: "rdma_device_sum", Help: help, Objectives: map[float64]float64{0.5: 0.1}})
	u := prometheus.NewUntypedFunc(prometheus.UntypedOpts{Name: "rdma_device_untyped"}, func() float64 { return math.Inf(-1) })
	other.MustRegister(h, s, u)
	return other
}

// gathered is what g gathers.
func gathered(t testing.TB, g prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// encoded is what expfmt makes of families.
func encoded(t testing.TB, families []*dto.MetricFamily, format expfmt.Format) string {
	t.Helper()
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

// TestWrite makes sure that what a collector writes itself, and what it gathers, is what
// client_golang makes of its series, to the byte, of every scene and in each format.
func TestWrite(t *testing.T) {
	if len(formats()) != 16 {
		t.Fatalf("formats: %v", formats())
	}
	other := around()
	for name, s := range scenes() {
		c := s.collector()
		for range 2 { // The second time much of it is kept from the first.
			writes(t, c, other, name, formats()...)
		}
	}
}

// TestWriteOdd is TestWrite of labels and values that no scene has.
func TestWriteOdd(t *testing.T) {
	for _, tc := range []struct {
		label string
		value float64
		count uint64
	}{
		{"", 0, 0},
		{`"`, math.NaN(), 1},
		{`\`, math.Inf(1), 1e6},
		{"\n", math.Inf(-1), 1e6 - 1},
		{`\n"}`, math.Copysign(0, -1), 1e15},
		{"\xff\xfe", math.MaxFloat64, math.MaxUint64},
		{"\xc3(\x00", math.SmallestNonzeroFloat64, 1 << 53},
		{"a\r\tb{c=\"d\"} 1\n# EOF\n", -1e6, 1<<53 + 1},
		{"é\u2028😀", 1e-7, 123_456_789},
		{strings.Repeat("\\\"\n", 20), 1e21, 1},
	} {
		writes(t, collector.Odd(strings.ToValidUTF8(tc.label, "\uFFFD"), tc.value, tc.count), prometheus.NewRegistry(), fmt.Sprintf("%.20q", tc.label), formats()...)
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
		writes(t, c, prometheus.NewRegistry(), fmt.Sprint(seconds), formats()...)
	}
	for _, n := range []int64{math.MaxInt64, math.MinInt64, 1 << 53, 1e15, 1e6 - 1, -1} {
		r := run("sim0")
		r.Info.Limits[0].Value = n
		r.Probes[0].CQs[0].Actual = n
		writes(t, collectorOf(&state.Snapshot{Devices: []state.DeviceState{stateOf(r)}}), prometheus.NewRegistry(), fmt.Sprint(n), formats()...)
	}
}

// writes is TestWrite of one collector.
func writes(t testing.TB, c *collector.Collector, other prometheus.Gatherer, name string, formats ...expfmt.Format) {
	t.Helper()
	reference, own := gathered(t, collector.Reference(c, other)), gathered(t, c.Gatherer(other))
	for _, format := range formats {
		want := encoded(t, reference, format)
		var got bytes.Buffer
		if err := c.Write(&got, other, format); err != nil {
			t.Fatalf("%s, %s: %v", name, format, err)
		}
		if got.String() != want {
			t.Errorf("%s, %s:\n%s", name, format, golden.Diff(want, got.String()))
		}
		if got := encoded(t, own, format); got != want {
			t.Errorf("%s, %s, gathered:\n%s", name, format, golden.Diff(want, got))
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
