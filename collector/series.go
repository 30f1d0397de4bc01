package collector

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"rdma_exporter/internal/text"
)

// maxSeries is the most gauges that the last runs of one device may make. Runs
// with the default profiles make some 200.
const maxSeries = 4096

// series is one series. It is not changed once it is in a block that others have.
type series struct {
	family *family
	// values are those of the labels, in the order of the declaration.
	values []string
	// value is that of a gauge or a counter.
	value float64
	// more is what a gauge does not have; nil for one, and for what others count.
	more *more
}

// more is what a series has beside a value. It is not changed.
type more struct {
	// created is since when a counter counts.
	created *timestamppb.Timestamp
	// summed are a summary's.
	summed total
	// histogram is a histogram's.
	histogram *dto.Histogram
}

// block is a set of series, in the order of their families by name. Once built it is not
// changed, so that any number of scrapes may share it.
type block []series

// builder fills a block with what the snapshot says: gauges, and counters that others
// count. Of a series told twice the last value wins.
type builder struct {
	*metrics
	all []series
	// index has the places in all.
	index map[string]int
	// past are the sparse series of the device that were not 0 once.
	past past
	// left is how many series may still be added; dropped counts the others.
	left    int
	dropped int
}

func newBuilder(m *metrics) *builder {
	return &builder{metrics: m, index: make(map[string]int), past: make(past), left: maxSeries}
}

// reset has the builder begin another block, in the memory of the one before.
func (b *builder) reset(past past) {
	clear(b.index)
	b.all, b.past, b.left, b.dropped = b.all[:0], past, maxSeries, 0
}

// block returns what was added.
func (b *builder) block() block { return inOrder(b.all) }

// inOrder returns a block of series, of which those of a family stay in their order.
func inOrder(all []series) block {
	slices.SortStableFunc(all, func(x, y series) int { return cmp.Compare(x.family.index, y.family.index) })
	return slices.Clone(all) // which takes no more room than it needs
}

// gauge adds a series. The label values are in the order of the declaration, and the
// builder's from then on.
func (b *builder) gauge(f *family, value float64, values ...string) { b.add(f, value, values) }

// counter is gauge for what the kernel or the adapter counts.
func (b *builder) counter(f *family, value uint64, values ...string) {
	b.add(f, float64(value), values)
}

// add adds a series of the type of its family.
func (b *builder) add(f *family, value float64, values []string) {
	if f.off {
		return
	}
	for i, v := range values {
		values[i] = text.Valid(v)
	}
	key := seriesKey(f, values)
	if at, ok := b.index[key]; ok {
		b.all[at].value = value
		return
	}
	if b.left == 0 {
		b.dropped++
		return
	}
	b.left--
	b.index[key] = len(b.all)
	b.all = append(b.all, series{family: f, values: values, value: value})
}

// truth adds a series with the value 1 or 0.
func (b *builder) truth(f *family, value bool, values ...string) {
	b.gauge(f, number(value), values...)
}

// number is 1 or 0.
func number(value bool) float64 {
	if value {
		return 1
	}
	return 0
}

// past are the sparse series of a device that were not 0 once, with their label values
// by their keys. There are no more of them than series of a device.
type past map[string]sparseSeries

type sparseSeries struct {
	family *family
	values []string
}

// sparse adds a series unless it is 0 and always was: what never happens costs nothing,
// and what happened once is seen to end.
func (b *builder) sparse(f *family, value float64, values ...string) {
	if f.off {
		return
	}
	for i, v := range values {
		values[i] = text.Valid(v)
	}
	key := seriesKey(f, values)
	_, was := b.past[key]
	if value == 0 && !was {
		return
	}
	if !was && len(b.past) < maxSeries {
		b.past[key] = sparseSeries{f, slices.Clone(values)}
	}
	b.add(f, value, values)
}

// ended adds the sparse series of a family that were not told, as 0.
func (b *builder) ended(f *family) {
	for _, key := range slices.Sorted(maps.Keys(b.past)) {
		if s := b.past[key]; s.family == f {
			if _, told := b.index[key]; !told {
				b.add(f, 0, slices.Clone(s.values))
			}
		}
	}
}

// seriesKey identifies a series. Valid values have no byte 0xff, so it tells
// where one value ends and the next begins.
func seriesKey(f *family, values []string) string {
	size := 2
	for _, v := range values {
		size += len(v) + 1
	}
	var sb strings.Builder
	sb.Grow(size)
	sb.WriteByte(byte(f.index >> 8))
	sb.WriteByte(byte(f.index))
	for _, v := range values {
		sb.WriteString(v)
		sb.WriteByte(0xff)
	}
	return sb.String()
}
