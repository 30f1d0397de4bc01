package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

const (
	// pastFile is the file of --state.dir in which what is remembered is kept over a
	// restart, and damagedSuffix is what is added to its name if it cannot be used.
	pastFile      = "past.json"
	damagedSuffix = ".damaged"
	// maxPastBytes is how large it may be, and maxPastName how long a name in it.
	maxPastBytes = 1 << 20
	maxPastName  = 8192
	// maxPastLinks is of how many ports it has how their states went.
	maxPastLinks = 512
	// maxPastExhausted is of how many types of how many devices it has what there was no
	// more of.
	maxPastExhausted = 512
	// maxPastWitnesses is of how many opened devices it has whose they were.
	maxPastWitnesses = 512
	pastVersion      = 1

	// keepEvery is how often what is remembered is kept, if it has changed.
	keepEvery = time.Minute
	// fileTime is how long a file system may take over the file, at start and at the end: long
	// enough for a host that is busy, as most are when they start.
	fileTime = 5 * time.Second
)

// pastJSON is the content of the file.
type pastJSON struct {
	Version  int                       `json:"version"`
	Findings []seenJSON                `json:"findings"`
	Ports    map[string][]int          `json:"ports,omitempty"`
	Links    map[string]state.LinkPast `json:"links,omitempty"`
	// Exhausted is what devices had no more of, as far as it holds.
	Exhausted map[string][]health.Exhausted `json:"exhausted,omitempty"`
	// Witnesses are who had which opened device.
	Witnesses map[string][]health.Witness `json:"witnesses,omitempty"`
}

// seenJSON is when a finding was seen.
type seenJSON struct {
	Device  string      `json:"device"`
	Kind    health.Kind `json:"finding"`
	Subject string      `json:"subject"`
	First   time.Time   `json:"first"`
	Last    time.Time   `json:"last"`
}

// keptLinks returns the links of a past as they are kept: of too many, those of devices that
// are not there are left out first, the longest away before the others, and then those that
// never changed.
func keptLinks(all map[string]state.LinkPast) map[string]state.LinkPast {
	type kept struct {
		device string
		state.Link
	}
	var links []kept
	for device, past := range all {
		for _, l := range past.Links {
			links = append(links, kept{device, l})
		}
	}
	never := func(l *kept) int {
		if l.Ups+l.Downs+l.GIDChanges > 0 {
			return 0
		}
		return 1
	}
	slices.SortFunc(links, func(a, b kept) int {
		was, is := all[a.device].Away, all[b.device].Away
		if was.IsZero() != is.IsZero() {
			return was.Compare(is) // Zero is before any other.
		}
		return cmp.Or(is.Compare(was), cmp.Compare(never(&a), never(&b)), strings.Compare(a.device, b.device), cmp.Compare(a.Port, b.Port))
	})
	file := make(map[string]state.LinkPast)
	for _, l := range links[:min(len(links), maxPastLinks)] {
		past, known := file[l.device]
		if !known {
			past = all[l.device]
			past.Links, past.Away = nil, past.Away.UTC().Truncate(time.Second)
		}
		l.Since = l.Since.UTC().Truncate(time.Second)
		l.Recent = slices.Clone(l.Recent)
		for i := range l.Recent {
			l.Recent[i] = l.Recent[i].UTC().Truncate(time.Second)
		}
		past.Links = append(past.Links, l.Link)
		file[l.device] = past
	}
	return file
}

// checkLinks returns what is wrong with links that were kept.
func checkLinks(all map[string]state.LinkPast) error {
	n := 0
	for device, past := range all {
		wrong := len(device)+len(past.PCI)+len(past.BoardID) > maxPastName || !writable(past.Away)
		ports := make(map[int]bool)
		for _, l := range past.Links {
			wrong = wrong || !writable(l.Since) || slices.ContainsFunc(l.Recent, func(at time.Time) bool { return !writable(at) }) ||
				l.MaxRate < 0 || l.Port < 1 || l.Port > 1<<16 || ports[l.Port] || len(l.Recent) > state.MaxRecent
			ports[l.Port] = true
			n++
		}
		if wrong {
			return fmt.Errorf("the links of %.200q make no sense", device)
		}
	}
	if n > maxPastLinks {
		return fmt.Errorf("it has %d links, more than %d", n, maxPastLinks)
	}
	return nil
}

// keptExhausted returns what devices had no more of as it is kept, and no more of it than
// may be.
func keptExhausted(all map[string][]health.Exhausted) map[string][]health.Exhausted {
	kept, left := make(map[string][]health.Exhausted), maxPastExhausted
	for _, device := range slices.Sorted(maps.Keys(all)) {
		holding := health.Holding(all[device])
		holding = holding[:min(left, len(holding))]
		left -= len(holding)
		for i := range holding {
			holding[i].At = holding[i].At.UTC()
		}
		if len(holding) > 0 {
			kept[device] = holding
		}
	}
	return kept
}

// checkExhausted returns what is wrong with what was kept of that.
func checkExhausted(all map[string][]health.Exhausted) error {
	n := 0
	for device, list := range all {
		types := make(map[string]bool)
		for _, e := range list {
			words := len(device) + len(e.Verb) + len(e.Errno) + len(e.Firmware) + len(e.NodeGUID)
			if words > maxPastName || !slices.Contains(state.ResourceTypes(), e.Type) || types[e.Type] || e.Objects < 1 || !writable(e.At) {
				return fmt.Errorf("the exhausted types of %.200q make no sense", device)
			}
			types[e.Type] = true
			n++
		}
	}
	if n > maxPastExhausted {
		return fmt.Errorf("it has %d exhausted types, more than %d", n, maxPastExhausted)
	}
	return nil
}

// keptWitnesses returns who had which opened device as it is kept, and no more of it than
// may be. It is exact to the hour, for it changes all the time.
func keptWitnesses(all map[string][]health.Witness) map[string][]health.Witness {
	kept, left := make(map[string][]health.Witness), maxPastWitnesses
	for _, device := range slices.Sorted(maps.Keys(all)) {
		list := slices.Clone(all[device])
		list = list[:min(left, len(list))]
		left -= len(list)
		for i := range list {
			w := &list[i]
			w.Last, w.LeftLast = w.Last.Truncate(time.Hour), w.LeftLast.Truncate(time.Hour)
			for _, at := range []*time.Time{&w.First, &w.Last, &w.LeftFirst, &w.LeftLast} {
				*at = at.UTC()
			}
			if w.Last.Before(w.First) {
				w.Last = w.First
			}
			if w.LeftLast.Before(w.LeftFirst) {
				w.LeftLast = w.LeftFirst
			}
		}
		// They are in the order of times that are left out.
		slices.SortFunc(list, func(a, b health.Witness) int { return cmp.Compare(a.Context.ID, b.Context.ID) })
		if len(list) > 0 {
			kept[device] = list
		}
	}
	return kept
}

// checkWitnesses returns what is wrong with what was kept of that.
func checkWitnesses(all map[string][]health.Witness) error {
	n := 0
	for device, list := range all {
		for i := range list {
			w := &list[i]
			words := len(device) + len(w.Comm) + len(w.ContainerID) + len(w.PodUID) + len(w.Run)
			wrong := slices.ContainsFunc(w.Objects, func(c state.TypeCount) bool {
				return !slices.Contains(state.ResourceTypes(), c.Type) || c.Objects < 0
			})
			for _, at := range []time.Time{w.First, w.Last, w.LeftFirst, w.LeftLast} {
				wrong = wrong || !writable(at)
			}
			if words > maxPastName || w.PID < 0 || wrong || len(w.Objects) > len(state.ResourceTypes()) {
				return fmt.Errorf("the openers of %.200q make no sense", device)
			}
			n++
		}
		if len(list) > health.MaxWitnesses {
			return fmt.Errorf("%.200q was opened by %d, more than %d", device, len(list), health.MaxWitnesses)
		}
	}
	if n > maxPastWitnesses {
		return fmt.Errorf("it has %d openers of devices, more than %d", n, maxPastWitnesses)
	}
	return nil
}

// sinceBoot returns what was seen of opened devices since the host was started, at which
// the kernel begins to number them anew.
func sinceBoot(all map[string][]health.Witness, boot time.Time) map[string][]health.Witness {
	since := make(map[string][]health.Witness)
	for device, list := range all {
		list = slices.DeleteFunc(slices.Clone(list), func(w health.Witness) bool { return w.First.Before(boot) && w.LeftFirst.Before(boot) })
		if len(list) > 0 {
			since[device] = list
		}
	}
	return since
}

// booted returns when the host was started; zero if the kernel does not tell.
func booted(now time.Time) time.Time {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return time.Time{}
	}
	return now.Add(-time.Duration(info.Uptime) * time.Second)
}

// writable tells whether a time can be written in UTC, for which years have four digits.
func writable(at time.Time) bool {
	year := at.UTC().Year()
	return year >= 0 && year <= 9999
}

// encodePast returns a past as it is kept. Of one that is too large, what was seen first
// is kept.
func encodePast(p health.Past) ([]byte, error) {
	file := pastJSON{Version: pastVersion, Findings: []seenJSON{}, Ports: p.Ports, Links: keptLinks(p.Links), Exhausted: keptExhausted(p.Exhausted), Witnesses: keptWitnesses(p.Witnesses)}
	for _, key := range p.Sorted() {
		seen := p.Findings[key]
		file.Findings = append(file.Findings, seenJSON{key.Device, key.Kind, key.Subject, seen.First.UTC(), seen.Last.UTC()})
	}
	for {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(file); err != nil {
			return nil, fmt.Errorf("encode the kept state: %w", err)
		}
		if b.Len() <= maxPastBytes {
			return b.Bytes(), nil
		}
		if len(file.Findings) == 0 {
			return nil, fmt.Errorf("encode the kept state: it would take %d bytes", b.Len())
		}
		slices.SortStableFunc(file.Findings, func(a, b seenJSON) int { return a.First.Compare(b.First) })
		file.Findings = file.Findings[:len(file.Findings)/2]
	}
}

// decodePast returns the past that was kept as b, or what is wrong with it.
func decodePast(b []byte) (health.Past, error) {
	var file pastJSON
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return health.Past{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return health.Past{}, errors.New("there is more after its end")
	}
	switch {
	case file.Version != pastVersion:
		return health.Past{}, fmt.Errorf("it is version %d, not %d", file.Version, pastVersion)
	case len(file.Findings) > health.MaxPastFindings:
		return health.Past{}, fmt.Errorf("it has %d findings, more than %d", len(file.Findings), health.MaxPastFindings)
	case len(file.Ports) > health.MaxPastDevices:
		return health.Past{}, fmt.Errorf("it has the ports of %d devices, more than %d", len(file.Ports), health.MaxPastDevices)
	}
	past := health.Past{Findings: make(map[health.FindingKey]health.Seen, len(file.Findings)), Ports: make(map[string][]int, len(file.Ports))}
	for i, f := range file.Findings {
		if len(f.Device)+len(f.Kind)+len(f.Subject) > maxPastName || f.First.IsZero() || f.Last.Before(f.First) || !writable(f.First) || !writable(f.Last) {
			return health.Past{}, fmt.Errorf("finding %d makes no sense", i)
		}
		past.Findings[health.FindingKey{Device: f.Device, Kind: f.Kind, Subject: f.Subject}] = health.Seen{First: f.First, Last: f.Last}
	}
	for device, ports := range file.Ports {
		wrong := slices.ContainsFunc(ports, func(n int) bool { return n < 0 || n > 1<<16 })
		if len(device) > maxPastName || len(ports) > health.MaxPastPorts || wrong {
			return health.Past{}, fmt.Errorf("the ports of %.200q make no sense", device)
		}
		past.Ports[device] = ports
	}
	past.Links, past.Exhausted, past.Witnesses = file.Links, file.Exhausted, file.Witnesses
	return past, errors.Join(checkLinks(file.Links), checkExhausted(file.Exhausted), checkWitnesses(file.Witnesses))
}

// errDamaged is that what was kept cannot be used, and is to be set aside.
var errDamaged = errors.New("damaged")

// readPast reads what was kept in a folder; nothing if there is no such file.
func readPast(dir string) (health.Past, error) {
	path := filepath.Join(dir, pastFile)
	// A FIFO would be waited for, and a link may lead to one.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return health.Past{}, nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return health.Past{}, fmt.Errorf("%w: it is not a regular file", errDamaged)
	case err != nil:
		return health.Past{}, err
	}
	defer func() { _ = f.Close() }() // It was only read.
	info, err := f.Stat()
	if err != nil {
		return health.Past{}, err
	}
	if !info.Mode().IsRegular() {
		return health.Past{}, fmt.Errorf("%w: it is not a regular file", errDamaged)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxPastBytes+1))
	if err != nil {
		return health.Past{}, err
	}
	if len(b) > maxPastBytes {
		return health.Past{}, fmt.Errorf("%w: it is larger than %d bytes", errDamaged, maxPastBytes)
	}
	past, err := decodePast(b)
	if err != nil {
		return health.Past{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return past, nil
}

// restorePast returns what was kept in a folder, and makes the folder ready for more: what
// cannot be used is set aside, what a sudden end left over is removed. Nothing that is
// wrong there is more than a message.
func restorePast(ctx context.Context, dir string, logger *slog.Logger) health.Past {
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	past, err := unlessDone(ctx, func() (health.Past, error) {
		past, err := readPast(dir)
		path := filepath.Join(dir, pastFile)
		switch {
		case errors.Is(err, errDamaged):
			logger.Warn("The kept state cannot be used, and is set aside", "file", path+damagedSuffix, "err", err)
			if err := os.Rename(path, path+damagedSuffix); err != nil {
				logger.Warn("Cannot set aside the kept state", "file", path, "err", err)
			}
		case err != nil:
			logger.Warn("Cannot read the kept state", "file", path, "err", err)
		}
		// The pattern is wrong for no folder that there is.
		left, _ := filepath.Glob(filepath.Join(dir, "."+pastFile+".*"))
		for _, name := range left {
			_ = os.Remove(name) // It is in nobody's way.
		}
		return past, nil
	})
	if err != nil {
		logger.Warn("Cannot read the kept state", "file", filepath.Join(dir, pastFile), "err", "it takes too long")
	}
	past.Witnesses = sinceBoot(past.Witnesses, booted(time.Now()))
	return past
}

// judgeChanges has the host judged at once when something has changed, until ctx is done:
// since when a finding is there counts from when it was judged first, and nobody may ask.
func judgeChanges(ctx context.Context, changed <-chan struct{}, judge func()) {
	for {
		select {
		case <-changed:
			judge()
		case <-ctx.Done():
			return
		}
	}
}

// keeper keeps what is remembered in a folder, in a goroutine of its own: no scrape and no
// run waits for the file system.
type keeper struct {
	dir    string
	past   func() health.Past
	every  time.Duration
	logger *slog.Logger

	// kept is what is in the file, but for the time; nil if that is not known.
	kept []byte
	// writable tells that the last attempt to write went well; nil before the first.
	writable atomic.Pointer[bool]
}

// run keeps what is remembered at once, whenever it has changed, and once more when ctx is
// done.
func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(k.every)
	defer tick.Stop()
	for {
		k.keep()
		select {
		case <-ctx.Done():
			k.keep()
			return
		case <-tick.C:
		}
	}
}

// keep writes the file if more has changed than the time.
func (k *keeper) keep() {
	past := k.past()
	same, err := encodePast(timeless(past))
	if err == nil && bytes.Equal(same, k.kept) {
		return
	}
	var b []byte
	if err == nil {
		b, err = encodePast(past)
	}
	path := filepath.Join(k.dir, pastFile)
	if err == nil {
		err = replace(path, b)
	}
	was, writable := k.writable.Load(), err == nil
	k.writable.Store(&writable)
	if err != nil {
		k.kept = nil
		if was == nil || *was {
			k.logger.Error("Cannot write the kept state", "file", path, "err", err)
		}
		return
	}
	k.kept = same
	if was != nil && !*was {
		k.logger.Info("The kept state can be written again", "file", path)
	}
}

// timeless returns a past without when what is there now was last seen, which changes all
// the time: after a restart it counts from the latest of them anyway.
func timeless(p health.Past) health.Past {
	var latest time.Time
	for _, seen := range p.Findings {
		if seen.Last.After(latest) {
			latest = seen.Last
		}
	}
	same := health.Past{Findings: make(map[health.FindingKey]health.Seen, len(p.Findings)), Ports: p.Ports, Links: p.Links, Exhausted: p.Exhausted, Witnesses: p.Witnesses}
	for key, seen := range p.Findings {
		if seen.Last.Equal(latest) {
			seen.Last = seen.First
		}
		same.Findings[key] = seen
	}
	return same
}
