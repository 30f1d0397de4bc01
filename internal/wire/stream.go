package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"

	"rdma_exporter/internal/state"
)

// Line is one line of a report: a JSON object with one key, ended by a newline.
type Line struct {
	// Begin names a verb that is about to be called, and Call reports that it returned. So
	// the parent knows the verb in flight, whatever ends the child.
	Begin       string                    `json:"begin,omitzero" wire:"verb"`
	Call        *state.Call               `json:"call,omitzero"`
	Device      *state.Device             `json:"device,omitzero"`
	Probe       *state.Probe              `json:"probe,omitzero"`
	Planned     []state.Planned           `json:"planned,omitzero" wire:"max=128"`
	Contract    *state.Contract           `json:"contract,omitzero"`
	InProgress  string                    `json:"checking,omitzero" wire:"word"`
	Provisional *state.ProvisionalVerdict `json:"presumed,omitzero"`
	Undestroyed *state.Undestroyed        `json:"undestroyed,omitzero"`
	Events      []state.Events            `json:"events,omitzero"`
	Refused     *state.Refused            `json:"refused,omitzero"`
	Context     *state.Context            `json:"context,omitzero"`
	Reduced     *state.Reduced            `json:"reduced,omitzero"`
	Inventory   *state.Inventory          `json:"inventory,omitzero"`
	Hardware    *state.Hardware           `json:"hardware,omitzero"`
	Path        *state.Path               `json:"path,omitzero"`
	Bandwidth   *state.Bandwidth          `json:"bandwidth,omitzero"`
	Depth       *Depth                    `json:"depth,omitzero"`
	Facts       *state.Facts              `json:"facts,omitzero"`
	End         *End                      `json:"end,omitzero"`
}

// Depth is how much a probe run covers, and which sizes its configuration requests.
type Depth struct {
	Depth state.Depth `json:"depth"`
	Sizes string      `json:"sizes" wire:"word"`
}

// End closes a whole report.
type End struct {
	// Error says why the run could not be done at all. Empty if it could.
	Error string `json:"error,omitempty"`
	// Verb and Errno name the verb that was the cause of Error. Empty if none was.
	Verb  string `json:"verb,omitempty" wire:"verb"`
	Errno string `json:"errno,omitempty" wire:"word"`
	// MaxRSS is the maximum memory that the process had resident, in bytes. Zero means
	// unknown.
	MaxRSS int64 `json:"max_rss_bytes,omitempty"`
}

// Writer writes the report of a run. It is unbuffered: a line reaches the reader even if the
// writer's process dies. It is safe for concurrent use. After an error it writes nothing more
// and keeps returning the error.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewWriter returns a Writer to w, which the caller keeps and closes.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Err returns the first error of a write.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Send writes a line, which has one field set. If no reader would accept the hardware of a
// device, that is a failure of this device alone.
func (w *Writer) Send(l Line) error {
	if l.Hardware != nil {
		h := *l.Hardware
		if err := check(&h); err != nil {
			h = state.Hardware{Device: h.Device, Failure: err.Error()}
		}
		l.Hardware = &h
	}
	// Learning the types of all fields would take a child a twentieth of its time.
	set := make(map[string]any)
	for field, value := range reflect.ValueOf(l).Fields() {
		if key, _, _ := strings.Cut(field.Tag.Get("json"), ","); !value.IsZero() {
			set[key] = value.Interface()
		}
	}
	b, err := json.Marshal(set)
	if err != nil {
		return fmt.Errorf("encode a line of the report: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if _, err := w.w.Write(append(b, '\n')); err != nil {
		w.err = fmt.Errorf("write the report: %w", err)
	}
	return w.err
}

// What a reader accepts from a child. A report at defaults has some 50 KB.
const (
	// MaxReport limits the size of a report, in bytes.
	MaxReport = 16 << 20
	// MaxLine limits the size of a line, in bytes. The longest is an inventory of a host
	// with hundreds of owners with long names.
	MaxLine = 4 << 20
	// MaxDevices limits the devices whose hardware one child reads.
	MaxDevices = 2048

	maxCalls     = 1 << 14
	maxProbes    = 64
	maxContracts = 128
)

var (
	// ErrTruncated is matched by the error for a report without an end.
	ErrTruncated = errors.New("the report ends before its last line")
	// ErrTooLarge is matched by the error for a report, line or list above its bound.
	ErrTooLarge = errors.New("the report is too large")
)

// Read reads a report and adds its lines to run. It returns nil for a whole report.
// Otherwise run holds the lines before the error. The error matches ErrTruncated for a report
// without an end, and ErrTooLarge for one above a bound. Read never panics.
//
// Read continues after the end line until r ends, since nothing may follow it. An error of r
// there does not matter. Callers must not use run before Read returns. To make it return
// early, make r fail.
func Read(r io.Reader, run *state.Run) error {
	// The byte above the bound distinguishes a report that is too large.
	limited := &io.LimitedReader{R: r, N: MaxReport + 1}
	in := bufio.NewReader(limited)
	seen, ended := make(map[string]bool), false
	for n := 1; ; n++ {
		b, err := in.ReadBytes('\n')
		switch {
		case len(b) > MaxLine:
			return fmt.Errorf("%w: line %d has more than %d bytes", ErrTooLarge, n, MaxLine)
		case err != nil && limited.N <= 0:
			return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, MaxReport)
		case ended && len(bytes.TrimSpace(b)) != 0:
			return fmt.Errorf("line %d of the report: text after the end", n)
		case err == nil && !ended:
			if ended, err = addLine(run, seen, b); err != nil {
				return fmt.Errorf("line %d of the report: %w", n, err)
			}
		case err == nil:
		case ended:
			return nil
		case len(b) != 0:
			return fmt.Errorf("%w: line %d is cut off (%.80q)", ErrTruncated, n, b)
		case errors.Is(err, io.EOF):
			return ErrTruncated
		default:
			return fmt.Errorf("%w: %w", ErrTruncated, err)
		}
	}
}

// addLine adds a line to run and reports whether it was the last.
func addLine(run *state.Run, seen map[string]bool, b []byte) (end bool, err error) {
	var l Line
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return false, fmt.Errorf("not a line of a report: %w (%.80q)", err, b)
	}
	if len(bytes.TrimSpace(b[dec.InputOffset():])) != 0 {
		return false, fmt.Errorf("more than one value (%.80q)", b)
	}
	keys := 0
	for _, value := range reflect.ValueOf(l).Fields() {
		if !value.IsZero() {
			keys++
		}
	}
	if keys != 1 {
		return false, fmt.Errorf("%d keys instead of one (%.80q)", keys, b)
	}
	if err := check(&l); err != nil {
		return false, err
	}
	return l.End != nil, l.addTo(run, seen)
}

func (l *Line) addTo(run *state.Run, seen map[string]bool) error {
	switch {
	case l.Begin != "":
		run.Verb = l.Begin
	case l.Call != nil:
		run.Verb = ""
		return add(seen, &run.Calls, *l.Call, maxCalls)
	case l.Device != nil:
		run.Info = l.Device
		// Both lists are series of one metric.
		limits := slices.Concat(l.Device.Limits, l.Device.Extended)
		return check(&limits)
	case l.Probe != nil:
		return add(seen, &run.Probes, *l.Probe, maxProbes)
	case l.Planned != nil:
		run.Planned = l.Planned
	case l.InProgress != "":
		run.InProgress, run.Provisional = l.InProgress, nil
	case l.Provisional != nil:
		if name := l.Provisional.Contract.Name; name != run.InProgress {
			return fmt.Errorf("the verdict on %s is presumed while %.64q is checked", name, run.InProgress)
		}
		run.Provisional = l.Provisional
	case l.Contract != nil:
		run.InProgress, run.Provisional = "", nil
		return add(seen, &run.Contracts, *l.Contract, maxContracts)
	case l.Undestroyed != nil:
		return add(seen, &run.Undestroyed, *l.Undestroyed, maxList)
	case l.Events != nil:
		for _, e := range l.Events {
			if err := add(seen, &run.Events, e, maxList); err != nil {
				return err
			}
		}
	case l.Refused != nil:
		return add(seen, &run.Refused, *l.Refused, maxList)
	case l.Context != nil:
		run.Context = l.Context
	case l.Reduced != nil:
		run.Reduced = l.Reduced
	case l.Inventory != nil:
		run.Inventory = l.Inventory
	case l.Hardware != nil:
		return add(seen, &run.Hardware, *l.Hardware, MaxDevices)
	case l.Path != nil:
		run.Path = l.Path
	case l.Bandwidth != nil:
		run.Bandwidth = l.Bandwidth
	case l.Depth != nil:
		run.Depth, run.Sizes = l.Depth.Depth, l.Depth.Sizes
	case l.Facts != nil:
		run.Facts = l.Facts
	case l.End != nil:
		run.Error, run.MaxRSS = l.End.Error, l.End.MaxRSS
		run.FailedVerb, run.Errno = l.End.Verb, l.End.Errno
	}
	return nil
}

// add appends an item to a list of at most n, unless an equal key of its type was seen.
func add[T any](seen map[string]bool, list *[]T, item T, n int) error {
	if len(*list) >= n {
		return fmt.Errorf("%w: more than %d items", ErrTooLarge, n)
	}
	if key := keyOf(reflect.ValueOf(item)); key != "" {
		if err := unique(seen, fmt.Sprintf("%T %s", item, key)); err != nil {
			return err
		}
	}
	*list = append(*list, item)
	return nil
}
