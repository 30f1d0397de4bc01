package collector

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// pieceSize is how much text is written at once.
const pieceSize = 16 << 10

// Write writes what Gatherer would gather, as expfmt encodes it, in the text format, that
// of OpenMetrics or delimited protobuf. A scrape is mostly this: to make all messages, and
// to have their text written by expfmt, costs several times as much. If it returns an
// error, it has not written anything, unless w failed: in what other gathers something is
// wrong, or the format is another one (errors.ErrUnsupported).
func (c *Collector) Write(w io.Writer, other prometheus.Gatherer, format expfmt.Format) error {
	// What fails, fails for each write that follows, and so for Flush.
	out := bufio.NewWriterSize(w, pieceSize)
	var write func(all []*series) error
	switch format.FormatType() {
	case expfmt.TypeTextPlain:
		write = form{help: strings.NewReplacer(`\`, `\\`, "\n", `\n`)}.writeTo(out)
	case expfmt.TypeOpenMetrics:
		write = form{openMetrics: true, help: strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)}.writeTo(out)
	case expfmt.TypeProtoDelim:
		write = writeMessages(out)
	default:
		return fmt.Errorf("format %s: %w", format, errors.ErrUnsupported)
	}
	others, err := encode(other, format)
	if err != nil {
		return err
	}
	walk := walkOf(c.blocks())
	var all []*series
	for _, f := range c.byName {
		if all = slices.AppendSeq(all[:0], walk.of(f)); len(all) == 0 {
			continue
		}
		for len(others) > 0 && others[0].name <= f.name {
			_, _ = out.Write(others[0].text)
			others = others[1:]
		}
		if err := write(all); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	for _, o := range others {
		_, _ = out.Write(o.text)
	}
	if format.FormatType() == expfmt.TypeOpenMetrics {
		_, _ = expfmt.FinalizeOpenMetrics(out)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// fieldMetric is the number of the field metric of a MetricFamily.
const fieldMetric = 4

// writeMessages returns what writes series of one family as a delimited message. Its length
// comes first, and then one metric after the other: so there is one of them at a time, and
// not thousands. Names need not be escaped.
func writeMessages(out *bufio.Writer) func(all []*series) error {
	memory := new(messages)
	return func(all []*series) error {
		family := messageOf(all[0].family, nil)
		size := proto.Size(family)
		for i := range all {
			size += protowire.SizeTag(fieldMetric) + protowire.SizeBytes(proto.Size(memory.of(all[i : i+1])[0]))
		}
		b, err := proto.MarshalOptions{}.MarshalAppend(protowire.AppendVarint(out.AvailableBuffer(), uint64(size)), family)
		for i := range all {
			if err != nil {
				return err
			}
			_, _ = out.Write(b)
			m := memory.of(all[i : i+1])[0]
			b = protowire.AppendTag(out.AvailableBuffer(), fieldMetric, protowire.BytesType)
			b = protowire.AppendVarint(b, uint64(proto.Size(m)))
			b, err = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m)
		}
		_, _ = out.Write(b)
		return err
	}
}

// encoded is a family as it is exposed.
type encoded struct {
	name string
	text []byte
}

// encode encodes what g gathers, by name.
func encode(g prometheus.Gatherer, format expfmt.Format) ([]encoded, error) {
	families, err := g.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather: %w", err)
	}
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, format)
	ends := make([]int, len(families))
	for i, f := range families {
		if err := encoder.Encode(f); err != nil {
			return nil, fmt.Errorf("encode %s: %w", f.GetName(), err)
		}
		ends[i] = text.Len()
	}
	all, begin := make([]encoded, len(families)), 0
	for i, f := range families {
		all[i] = encoded{f.GetName(), text.Bytes()[begin:ends[i]]}
		begin = ends[i]
	}
	return all, nil
}

// walk goes through blocks family by family.
type walk struct{ left []block }

func walkOf(blocks []block) walk { return walk{blocks} }

// of yields the series of a family. Families are to be asked for in order, each once.
func (w walk) of(f *family) iter.Seq[*series] {
	return func(yield func(*series) bool) {
		for i := range w.left {
			for len(w.left[i]) > 0 && w.left[i][0].family == f {
				s := &w.left[i][0]
				w.left[i] = w.left[i][1:]
				if !yield(s) {
					return
				}
			}
		}
	}
}

// form is how series are written: in the text format, or in that of OpenMetrics.
type form struct {
	openMetrics bool
	// help escapes a help text.
	help *strings.Replacer
}

// writeTo returns what writes series of one family.
func (as form) writeTo(out *bufio.Writer) func(all []*series) error {
	return func(all []*series) error {
		_, _ = out.Write(as.appendHeader(out.AvailableBuffer(), all[0].family))
		for _, s := range all {
			_, _ = out.Write(as.appendSeries(out.AvailableBuffer(), s))
		}
		return nil
	}
}

// appendHeader appends what comes before the series of a family.
func (as form) appendHeader(b []byte, f *family) []byte {
	name := f.name
	if as.openMetrics && f.kind == dto.MetricType_COUNTER {
		name = strings.TrimSuffix(name, "_total")
	}
	b = append(append(append(b, "# HELP "...), name...), ' ')
	b = append(append(b, as.help.Replace(f.help)...), "\n# TYPE "...)
	b = append(append(b, name...), ' ')
	return append(append(b, strings.ToLower(f.kind.String())...), '\n')
}

// appendSeries appends the samples of a series.
func (as form) appendSeries(b []byte, s *series) []byte {
	switch s.family.kind {
	case dto.MetricType_SUMMARY:
		b = as.appendFloat(appendName(b, s, "_sum", nil), s.more.summed.seconds)
		return as.appendCount(appendName(b, s, "_count", nil), s.more.summed.count)
	case dto.MetricType_HISTOGRAM:
		h := s.more.histogram
		var bound [24]byte
		for _, bucket := range h.GetBucket() {
			le := as.appendValue(bound[:0], bucket.GetUpperBound())
			b = as.appendCount(appendName(b, s, "_bucket", le), bucket.GetCumulativeCount())
		}
		b = as.appendCount(appendName(b, s, "_bucket", []byte("+Inf")), h.GetSampleCount())
		b = as.appendFloat(appendName(b, s, "_sum", nil), h.GetSampleSum())
		return as.appendCount(appendName(b, s, "_count", nil), h.GetSampleCount())
	default:
		return as.appendFloat(appendName(b, s, "", nil), s.value)
	}
}

// appendName appends what comes before the value of a sample; le is nil for what is no
// bucket.
func appendName(b []byte, s *series, suffix string, le []byte) []byte {
	b = append(append(b, s.family.name...), suffix...)
	before := byte('{')
	for _, n := range s.family.order {
		b = append(append(append(b, before), s.family.labels[n]...), `="`...)
		b = append(appendEscaped(b, s.values[n]), '"')
		before = ','
	}
	if le != nil {
		b = append(append(append(append(b, before), `le="`...), le...), '"')
		before = ','
	}
	if before == ',' {
		b = append(b, '}')
	}
	return append(b, ' ')
}

// appendEscaped appends the value of a label.
func appendEscaped(b []byte, value string) []byte {
	for i := range len(value) {
		switch value[i] {
		case '\\', '"':
			b = append(b, '\\', value[i])
		case '\n':
			b = append(b, `\n`...)
		default:
			b = append(b, value[i])
		}
	}
	return b
}

// appendFloat appends the value of a sample, and ends its line.
func (as form) appendFloat(b []byte, v float64) []byte { return append(as.appendValue(b, v), '\n') }

// appendCount is appendFloat for what can only be counted.
func (as form) appendCount(b []byte, n uint64) []byte {
	if as.openMetrics {
		return append(strconv.AppendUint(b, n, 10), '\n')
	}
	return as.appendFloat(b, float64(n))
}

// appendValue appends a number.
func (as form) appendValue(b []byte, v float64) []byte {
	begin := len(b)
	if v == math.Trunc(v) && math.Abs(v) < 1e6 {
		// Most are, and this is faster.
		b = strconv.AppendInt(b, int64(v), 10)
	} else {
		b = strconv.AppendFloat(b, v, 'g', -1, 64)
	}
	if as.openMetrics && !math.IsInf(v, 0) && !math.IsNaN(v) && !bytes.ContainsAny(b[begin:], "e.") {
		b = append(b, ".0"...)
	}
	return b
}
