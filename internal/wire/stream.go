package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	"rdma_exporter/internal/state"
)

// A child process tells its parent what it does as JSON lines, each an object
// with one key, ended by a newline. A verb is named before it is called (begin)
// and again when it has returned (call), so that whatever ends the child, the
// parent knows the verb in flight: the last one begun, unless a call returned
// since. A contract is named before it is judged, too. The line "end" closes a
// whole report.
type line struct {
	Begin       string             `json:"begin,omitempty"`
	Call        *state.Call        `json:"call,omitempty"`
	Device      *state.Device      `json:"device,omitempty"`
	Probe       *state.Probe       `json:"probe,omitempty"`
	Planned     []state.Planned    `json:"planned,omitempty"`
	Judging     string             `json:"judging,omitempty"`
	Presumed    *state.Presumption `json:"presumed,omitempty"`
	Contract    *state.Contract    `json:"contract,omitempty"`
	Undestroyed *state.Undestroyed `json:"undestroyed,omitempty"`
	Events      []state.Events     `json:"events,omitempty"`
	Refused     *state.Refused     `json:"refused,omitempty"`
	Context     *state.Context     `json:"context,omitempty"`
	Light       *state.Light       `json:"light,omitempty"`
	Inventory   *state.Inventory   `json:"inventory,omitempty"`
	Hardware    *state.Hardware    `json:"hardware,omitempty"`
	Turn        *state.Turn        `json:"turn,omitempty"`
	Facts       *state.Facts       `json:"facts,omitempty"`
	End         *End               `json:"end,omitempty"`
}

// End closes a whole report.
type End struct {
	// Error says why the probes could not be run at all; empty if they were.
	Error string `json:"error,omitempty"`
	// Verb and Errno tell which verb was the cause of that; empty if none was.
	Verb  string `json:"verb,omitempty"`
	Errno string `json:"errno,omitempty"`
	// MaxRSS is the most memory that the process had resident, in bytes; 0 if it
	// is not known.
	MaxRSS int64 `json:"max_rss_bytes,omitempty"`
}

// Writer writes the report of a run, line by line, unbuffered: what was written
// reaches the reader even if the writer's process dies. It is safe for
// concurrent use. After an error it writes nothing more and keeps returning it.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewWriter returns a Writer to w, which the caller keeps and closes.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Begin says that a verb is about to be called.
func (w *Writer) Begin(verb string) error {
	if b, ok := appendBegin(nil, verb); ok {
		return w.send(b)
	}
	return w.write("begin", verb)
}

// Call says that a verb returned.
func (w *Writer) Call(c state.Call) error {
	if b, ok := appendCall(nil, &c); ok {
		return w.send(b)
	}
	return w.write("call", &c)
}

// Device says what the device said of itself.
func (w *Writer) Device(d state.Device) error { return w.write("device", &d) }

// Probe says what a probe found.
func (w *Writer) Probe(p state.Probe) error { return w.write("probe", &p) }

// Plan says which contracts are about to be judged, in order.
func (w *Writer) Plan(p []state.Planned) error { return w.write("planned", p) }

// Judging says that a contract is about to be judged.
func (w *Writer) Judging(contract string) error { return w.write("judging", contract) }

// Presume says what the verdict on the contract that is being judged is, should
// nothing more of it be said.
func (w *Writer) Presume(p state.Presumption) error { return w.write("presumed", &p) }

// Contract says what the verdict on a contract is.
func (w *Writer) Contract(c state.Contract) error { return w.write("contract", &c) }

// Undestroyed says that an object could not be destroyed.
func (w *Writer) Undestroyed(u state.Undestroyed) error { return w.write("undestroyed", &u) }

// Events says which asynchronous events came.
func (w *Writer) Events(e []state.Events) error { return w.write("events", e) }

// Refused says that the device had no more objects of a type to give.
func (w *Writer) Refused(r state.Refused) error { return w.write("refused", &r) }

// Context says what the kernel calls the device that was opened.
func (w *Writer) Context(c state.Context) error { return w.write("context", &c) }

// Light says why the run does as little as it can.
func (w *Writer) Light(l state.Light) error { return w.write("light", &l) }

// Inventory says what the inventory found so far. A second one takes the place
// of the first.
func (w *Writer) Inventory(i state.Inventory) error { return w.write("inventory", &i) }

// Hardware says what was read of the hardware of a device. What no reader would take is
// a failure of that device alone, and says so.
func (w *Writer) Hardware(h state.Hardware) error {
	if err := validateHardware(&h); err != nil {
		h = state.Hardware{Device: h.Device, Failure: clip(err.Error())}
	}
	return w.write("hardware", &h)
}

// Turn says what the run does beyond what every run does.
func (w *Writer) Turn(t state.Turn) error { return w.write("turn", &t) }

// Facts says what is known of the device by now that need not be asked again. A second
// one takes the place of the first.
func (w *Writer) Facts(f state.Facts) error { return w.write("facts", &f) }

// End closes the report.
func (w *Writer) End(e End) error { return w.write("end", &e) }

// Err returns the first error of a write, if there was one.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// write writes a line with a value under the key that it has in line. That type is not
// encoded itself: to learn how all that it may hold is encoded takes a short process as
// long as much of what it does.
func (w *Writer) write(key string, value any) error {
	var b bytes.Buffer
	b.WriteString(`{"` + key + `":`)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("encode a line of the report: %w", err)
	}
	b.Truncate(b.Len() - len("\n"))
	b.WriteString("}\n")
	return w.send(b.Bytes())
}

// send writes a line.
func (w *Writer) send(b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if _, err := w.w.Write(b); err != nil {
		w.err = fmt.Errorf("write the report: %w", err)
	}
	return w.err
}

// The most that a reader takes from a child. A whole report of the default
// profiles is some 50 KB.
const (
	// MaxReport is the most bytes of a report.
	MaxReport = 16 << 20
	// MaxDevices is the most devices whose hardware one child reads.
	MaxDevices = 2048
	// MaxLine is the most bytes of one line. An inventory of a host with hundreds of
	// owners of long names is the longest.
	MaxLine = 4 << 20

	maxCalls  = 1 << 14
	maxLimits = 64
	maxPorts  = 256
	maxVector = 1 << 16
	maxProbes = 64
	// maxContracts is the most contracts of one run.
	maxContracts = 128
	// maxSamples is the most samples of one measurement.
	maxSamples = 1 << 14
	maxItems   = 2048
	maxText    = 4096
	maxLabel   = 128
)

var (
	// ErrTruncated is matched by the error for a report that has no end.
	ErrTruncated = errors.New("the report ends before its last line")
	// ErrTooLarge is matched by the error for a report or line that is larger
	// than a reader takes.
	ErrTooLarge = errors.New("the report is too large")
)

// LineError tells which line of a report could not be used.
type LineError struct {
	// Line counts from 1.
	Line int
	Err  error
}

// Error implements error.
func (e *LineError) Error() string { return fmt.Sprintf("line %d of the report: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// Read reads a report until its end and adds what it says to run: Info, Probes,
// Calls, Planned, Contracts, Judging (the contract that was being judged) and
// Presumed, Undestroyed, Events, Refused, Context, Light, Inventory, Hardware, Turn, Facts, Verb (the verb in flight), and
// MaxRSS, Error, FailedVerb and Errno from the end line. It returns nil for a whole
// report. Otherwise the error says what is wrong with it, and run holds what was
// read until there. The error matches ErrTruncated or ErrTooLarge, or is a
// *LineError. Read never panics, whatever it reads.
//
// Read goes on after the end line until r ends, since nothing may follow it; an
// error of r from there on takes nothing from a whole report. Read keeps no part
// of r. Nobody else may use run before Read returns: to make it return early,
// make r fail.
func Read(r io.Reader, run *state.Run) error {
	// One byte more than a report may have tells a report that is too large from
	// one that just fits.
	limited := &io.LimitedReader{R: r, N: MaxReport + 1}
	lines := newLines(limited)
	for lines.Scan() {
		end, err := fold(lines.Bytes(), run)
		if err != nil {
			return &LineError{Line: lines.n, Err: err}
		}
		if end {
			return trailing(lines, limited)
		}
	}
	if err := tooLarge(lines, limited); err != nil {
		return err
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrTruncated, err)
	}
	if len(lines.rest) != 0 {
		return fmt.Errorf("%w: line %d is cut off (%s)", ErrTruncated, lines.n+1, excerpt(lines.rest))
	}
	return ErrTruncated
}

// lines scans lines that end in a newline. What follows the last newline is no
// line, since its writer died in the midst of it or the reader stopped there: it
// is kept in rest.
type lines struct {
	*bufio.Scanner
	n    int
	rest []byte
}

func newLines(r io.Reader) *lines {
	l := &lines{Scanner: bufio.NewScanner(r)}
	l.Buffer(make([]byte, 0, 16<<10), MaxLine)
	// searched is how much of the data is known to hold no newline: a writer that
	// sends a long line byte by byte must not have it searched as often.
	searched := 0
	l.Split(func(data []byte, atEOF bool) (advance int, token []byte, err error) {
		if i := bytes.IndexByte(data[searched:], '\n'); i >= 0 {
			i += searched
			searched = 0
			l.n++
			return i + 1, data[:i:i], nil
		}
		searched = len(data)
		if atEOF {
			l.rest, searched = bytes.Clone(data), 0
			return len(data), nil, nil
		}
		return 0, nil, nil
	})
	return l
}

// trailing makes sure that nothing follows the end line.
func trailing(lines *lines, limited *io.LimitedReader) error {
	text := errors.New("text after the end of the report")
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) != 0 {
			return &LineError{Line: lines.n, Err: text}
		}
	}
	if err := tooLarge(lines, limited); err != nil {
		return err
	}
	if len(bytes.TrimSpace(lines.rest)) != 0 {
		return &LineError{Line: lines.n + 1, Err: text}
	}
	return nil
}

// tooLarge tells whether the scan ended at one of the bounds.
func tooLarge(lines *lines, limited *io.LimitedReader) error {
	switch {
	case errors.Is(lines.Err(), bufio.ErrTooLong):
		return fmt.Errorf("%w: line %d has more than %d bytes", ErrTooLarge, lines.n+1, MaxLine)
	case limited.N <= 0:
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, MaxReport)
	default:
		return nil
	}
}

// fold adds one line to run and tells whether it was the last.
func fold(b []byte, run *state.Run) (end bool, err error) {
	if foldShort(b, run) {
		return false, nil
	}
	return foldJSON(b, run)
}

// foldJSON is fold for every line.
func foldJSON(b []byte, run *state.Run) (end bool, err error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return false, fmt.Errorf("not a line of a report: %w (%s)", err, excerpt(b))
	}
	if len(bytes.TrimSpace(b[dec.InputOffset():])) != 0 {
		return false, fmt.Errorf("more than one value (%s)", excerpt(b))
	}
	if n := l.keys(); n != 1 {
		return false, fmt.Errorf("%d keys instead of one (%s)", n, excerpt(b))
	}
	switch {
	case l.Begin != "":
		if !isVerb(l.Begin) {
			return false, fmt.Errorf("%.64q is not the name of a verb", l.Begin)
		}
		run.Verb = l.Begin
	case l.Call != nil:
		if err := validateCall(l.Call); err != nil {
			return false, err
		}
		if len(run.Calls) >= maxCalls {
			return false, fmt.Errorf("%w: more than %d calls", ErrTooLarge, maxCalls)
		}
		run.Verb = ""
		run.Calls = append(run.Calls, *l.Call)
	case l.Device != nil:
		if err := validateDevice(l.Device); err != nil {
			return false, err
		}
		cleanDevice(l.Device)
		run.Info = l.Device
	case l.Probe != nil:
		if len(run.Probes) >= maxProbes {
			return false, fmt.Errorf("%w: more than %d probes", ErrTooLarge, maxProbes)
		}
		if err := validateProbe(l.Probe); err != nil {
			return false, err
		}
		if slices.ContainsFunc(run.Probes, func(p state.Probe) bool { return p.Name == l.Probe.Name }) {
			return false, fmt.Errorf("probe %s is there twice", l.Probe.Name)
		}
		clipProbe(l.Probe)
		run.Probes = append(run.Probes, *l.Probe)
	case l.Planned != nil:
		if len(l.Planned) > maxContracts || run.Planned != nil {
			return false, fmt.Errorf("%w: a plan of %d contracts, or a second one", ErrTooLarge, len(l.Planned))
		}
		for _, p := range l.Planned {
			if !isLabel(p.Name) || !slices.Contains(state.Severities(), p.Severity) {
				return false, fmt.Errorf("%.64q of severity %.64q is planned", p.Name, p.Severity)
			}
		}
		run.Planned = l.Planned
	case l.Judging != "":
		if !isLabel(l.Judging) {
			return false, fmt.Errorf("%.64q is not the name of a contract", l.Judging)
		}
		run.Judging, run.Presumed = l.Judging, nil
	case l.Presumed != nil:
		if err := validateContract(&l.Presumed.Contract); err != nil {
			return false, err
		}
		if name := l.Presumed.Contract.Name; name != run.Judging {
			return false, fmt.Errorf("the verdict on %s is presumed while %.64q is judged", name, run.Judging)
		}
		clipContract(&l.Presumed.Contract)
		run.Presumed = l.Presumed
	case l.Contract != nil:
		if len(run.Contracts) >= maxContracts {
			return false, fmt.Errorf("%w: more than %d contracts", ErrTooLarge, maxContracts)
		}
		if err := validateContract(l.Contract); err != nil {
			return false, err
		}
		if slices.ContainsFunc(run.Contracts, func(c state.Contract) bool { return c.Name == l.Contract.Name }) {
			return false, fmt.Errorf("contract %s is there twice", l.Contract.Name)
		}
		clipContract(l.Contract)
		run.Judging, run.Presumed = "", nil
		run.Contracts = append(run.Contracts, *l.Contract)
	case l.Undestroyed != nil:
		if len(run.Undestroyed) >= maxItems {
			return false, fmt.Errorf("%w: more than %d undestroyed objects", ErrTooLarge, maxItems)
		}
		if !isLabel(l.Undestroyed.Type) || !isLabel(l.Undestroyed.Errno) {
			return false, fmt.Errorf("an undestroyed object of type %.64q with errno %.64q", l.Undestroyed.Type, l.Undestroyed.Errno)
		}
		run.Undestroyed = append(run.Undestroyed, *l.Undestroyed)
	case l.Events != nil:
		if len(run.Events)+len(l.Events) > maxItems {
			return false, fmt.Errorf("%w: more than %d types of events", ErrTooLarge, maxItems)
		}
		for _, e := range l.Events {
			if !isLabel(e.Type) || e.Port < 0 || e.Port > maxPorts || e.Count < 1 || e.Count > maxCalls {
				return false, fmt.Errorf("%d events %.64q of port %d", e.Count, e.Type, e.Port)
			}
		}
		run.Events = append(run.Events, l.Events...)
	case l.Refused != nil:
		if err := validateRefused(l.Refused, run.Refused); err != nil {
			return false, err
		}
		run.Refused = append(run.Refused, *l.Refused)
	case l.Context != nil:
		if run.Context != nil {
			return false, errors.New("a second context")
		}
		run.Context = l.Context
	case l.Light != nil:
		if run.Light != nil {
			return false, errors.New("it is light twice")
		}
		if err := validateLight(l.Light); err != nil {
			return false, err
		}
		l.Light.Detail = clip(l.Light.Detail)
		run.Light = l.Light
	case l.Inventory != nil:
		if err := validateInventory(l.Inventory); err != nil {
			return false, err
		}
		clipInventory(l.Inventory)
		run.Inventory = l.Inventory
	case l.Hardware != nil:
		if err := validateHardware(l.Hardware); err != nil {
			return false, err
		}
		if len(run.Hardware) >= MaxDevices {
			return false, fmt.Errorf("%w: the hardware of more than %d devices", ErrTooLarge, MaxDevices)
		}
		if slices.ContainsFunc(run.Hardware, func(h state.Hardware) bool { return h.Device == l.Hardware.Device }) {
			return false, fmt.Errorf("the hardware of %.64q is there twice", l.Hardware.Device)
		}
		cleanHardware(l.Hardware)
		run.Hardware = append(run.Hardware, *l.Hardware)
	case l.Turn != nil:
		if err := validateTurn(l.Turn); err != nil {
			return false, err
		}
		if run.Turn != nil {
			return false, errors.New("a second turn")
		}
		run.Turn = l.Turn
	case l.Facts != nil:
		if err := validateFacts(l.Facts); err != nil {
			return false, err
		}
		clipFacts(l.Facts)
		run.Facts = l.Facts
	case l.End != nil:
		if err := l.End.validate(); err != nil {
			return false, err
		}
		run.Error, run.MaxRSS = clip(l.End.Error), l.End.MaxRSS
		run.FailedVerb, run.Errno = l.End.Verb, l.End.Errno
		return true, nil
	}
	return false, nil
}

// keys counts the keys of a line that say something.
func (l *line) keys() int {
	n := 0
	for _, set := range []bool{
		l.Begin != "", l.Call != nil, l.Device != nil, l.Probe != nil, l.Planned != nil, l.Judging != "", l.Presumed != nil, l.Contract != nil,
		l.Undestroyed != nil, l.Events != nil, l.Refused != nil, l.Context != nil, l.Light != nil, l.Inventory != nil, l.Hardware != nil, l.Turn != nil, l.Facts != nil, l.End != nil,
	} {
		if set {
			n++
		}
	}
	return n
}

func excerpt(b []byte) string { return fmt.Sprintf("%.80q", b) }

// clip cuts a text down to what a reader keeps of it.
func clip(s string) string { return clipTo(s, maxText) }

// clipTo cuts a text down to n bytes at most, at the border of a character.
func clipTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
