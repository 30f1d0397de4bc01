package ceiling

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"rdma_exporter/internal/refusal"
	"rdma_exporter/internal/text"
	"rdma_exporter/verbs"
)

const (
	// pollInterval is the time between two reports, and two looks at memory and time.
	pollInterval = 10 * time.Millisecond
	// minDestroyTime limits the time for destroying the objects, unless creating them took
	// more than half of it. Then the limit is twice that time.
	minDestroyTime = time.Minute
)

// Options are what a search needs.
type Options struct {
	Provider verbs.Provider
	// Type is one of Types.
	Device, Type string
	// Within limits the time for creating objects, and Memory the bytes that they take.
	Within time.Duration
	Memory int64
	// Before is how many objects of the type the kernel counted before. Nil means unknown.
	Before *int64
	// Host tells what limits the process besides the device.
	Host interface {
		Memory() (refusal.Memory, error)
		Limits() (refusal.Limits, error)
	}
	// Tell receives the state of the search now and then, and at the end.
	Tell func(Report)
}

type search struct {
	Options
	report         Report
	memory, before refusal.Memory
	told           time.Time
	// needs are what the objects need.
	needs, objects []io.Closer
}

// NewReport returns the report of a search that begins.
func NewReport(o Options) Report {
	return Report{Version: 1, Device: o.Device, Type: o.Type, Limit: "max_" + o.Type, Before: o.Before, Began: time.Now().UTC()}
}

// Find creates objects until one is refused or a budget is used up, and destroys them.
func Find(o Options) {
	s := &search{Options: o, report: NewReport(o)}
	create, err := s.prepare()
	if err == nil {
		err = s.createAll(create)
	}
	if err != nil {
		s.end(refusal.Unknown, err.Error(), err)
	}
	took := time.Since(s.report.Began)
	s.report.Seconds = took.Seconds()
	s.destroyAll(max(minDestroyTime, 2*took))
	s.Tell(s.report)
}

func (s *search) tell(now time.Time) {
	if now.Sub(s.told) >= pollInterval {
		s.told = now
		s.Tell(s.report)
	}
}

func (s *search) end(by refusal.Cause, detail string, err error) {
	s.report.EndedBy, s.report.Detail = by, text.Clean(detail)
	if v := (*verbs.Error)(nil); errors.As(err, &v) {
		s.report.Verb, s.report.Errno = string(v.Verb), verbs.ErrnoName(v.Errno)
	}
}

// prepare opens the device and returns how to create one object.
func (s *search) prepare() (create func() (io.Closer, error), err error) {
	if s.before, err = s.Host.Memory(); err != nil {
		return nil, err
	}
	device, err := s.Provider.Open(s.Device)
	if err != nil {
		return nil, err
	}
	s.needs = append(s.needs, device)
	attr, err := device.Query()
	if err != nil {
		return nil, err
	}
	l := attr.Limits
	claimed := int64(map[string]int{"cq": l.MaxCQ, "qp": l.MaxQP, "srq": l.MaxSRQ, "mr": l.MaxMR, "pd": l.MaxPD, "ah": l.MaxAH}[s.Type])
	s.report.Claimed, s.report.Firmware = &claimed, text.Clean(attr.Firmware)
	if s.Type == "pd" {
		return func() (io.Closer, error) { return device.AllocPD() }, nil
	}
	pd, err := device.AllocPD()
	if err != nil {
		return nil, err
	}
	s.needs = append(s.needs, pd)
	switch s.Type {
	case "cq":
		return func() (io.Closer, error) { return device.CreateCQ(verbs.CQInitAttr{Entries: 1}) }, nil
	case "srq":
		return func() (io.Closer, error) { return pd.CreateSRQ(verbs.SRQAttr{MaxWR: 1, MaxSGE: 1}) }, nil
	case "mr":
		return func() (io.Closer, error) { return pd.RegMR(1, verbs.AccessLocalWrite) }, nil
	case "ah":
		return s.addressHandles(device, pd, attr.Ports)
	default:
		return s.queuePairs(device, pd)
	}
}

// queuePairs returns how to create queue pairs of the first type that the device supports.
func (s *search) queuePairs(device verbs.Device, pd verbs.PD) (create func() (io.Closer, error), err error) {
	cq, err := device.CreateCQ(verbs.CQInitAttr{Entries: 1})
	if err != nil {
		return nil, err
	}
	s.needs = append(s.needs, cq)
	init := verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}}
	create = func() (io.Closer, error) { return pd.CreateQP(init) }
	for _, init.Type = range device.QPTypes() {
		s.report.QPType = init.Type.Label()
		first, err := pd.CreateQP(init)
		if err == nil {
			return create, first.Close()
		} else if !verbs.IsNotSupported(err) {
			break // It will be refused again.
		}
	}
	return create, nil
}

// addressHandles returns how to create address handles to the first port that reaches itself.
func (s *search) addressHandles(device verbs.Device, pd verbs.PD, ports int) (create func() (io.Closer, error), err error) {
	table, err := device.GIDTable()
	err = errors.Join(err, errors.New("no port reaches itself"))
	for number := 1; number <= ports; number++ {
		port, portErr := device.QueryPort(number)
		paths, pathErr := verbs.ToSelf(number, port, table)
		err = errors.Join(err, portErr, pathErr)
		for _, path := range paths {
			create = func() (io.Closer, error) { return pd.CreateAH(path) }
			first, createErr := create()
			if createErr == nil {
				return create, first.Close()
			}
			err = errors.Join(err, createErr)
		}
	}
	return nil, err
}

// createAll creates objects to the end. An error has to do with no limit.
func (s *search) createAll(create func() (io.Closer, error)) (err error) {
	for {
		if now := time.Now(); now.Sub(s.told) >= pollInterval {
			if s.memory, err = s.Host.Memory(); err != nil {
				return err
			}
			// Drivers take memory of the kernel, which no figure of a process contains.
			s.report.MemoryBytes = max(0, s.before.Available-s.memory.Available)
			switch {
			case now.Sub(s.report.Began) > s.Within:
				s.end(EndTime, fmt.Sprintf("%s were used up (--within)", s.Within), nil)
				return nil
			case s.report.MemoryBytes >= s.Memory:
				s.end(EndMemory, fmt.Sprintf("%s of %s were used up (--memory)", text.Bytes(s.report.MemoryBytes), text.Bytes(s.Memory)), nil)
				return nil
			case s.memory.IsLow():
				s.end(EndMemory, fmt.Sprintf("the host has only %s of %s available", text.Bytes(s.memory.Available), text.Bytes(s.memory.Total)), nil)
				return nil
			}
			s.tell(now)
		}
		o, err := create()
		if err != nil {
			limits, limitsErr := s.Host.Limits()
			by, detail := refusal.Of(err, refusal.Request{Objects: s.report.Objects}, s.memory, limits)
			if limitsErr != nil {
				detail += "; the limits of the process are unknown: " + limitsErr.Error()
			}
			s.end(by, detail, err)
			return nil
		}
		s.objects = append(s.objects, o)
		s.report.Objects++
		s.report.Left++
	}
}

// destroyAll destroys the newest objects first.
func (s *search) destroyAll(within time.Duration) {
	began := time.Now()
	var left error // the first that left something
	for _, o := range slices.Backward(s.objects) {
		now := time.Now()
		if now.Sub(began) > within {
			left = cmp.Or(left, errors.New("there was no time to destroy them"))
			break
		}
		s.tell(now)
		if err := o.Close(); err != nil {
			left = cmp.Or(left, err)
		} else {
			s.report.Left--
		}
	}
	if left == nil { // Otherwise they are in use.
		for _, o := range slices.Backward(s.needs) {
			left = cmp.Or(left, o.Close())
		}
	}
	s.report.GivingBackSeconds, s.report.GivenBack = time.Since(began).Seconds(), ByVerbs
	if left != nil {
		s.report.GivenBack, s.report.LeftDetail = ByKernel, text.Clean(left.Error())
	}
}
