package session

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// Flush is a method to flush work requests: they complete without success because their QP is
// in the error state. No message is sent. Devices differ in what they accept in which state.
type Flush int

// The methods, the best first.
const (
	// FlushUD posts sends to a UD QP in the error state. The QP was in RTS before: without
	// that, some drivers refuse sends, and some devices do not know the QP. It needs an
	// address, but no peer and no active port.
	FlushUD Flush = iota
	// FlushRC posts sends to an RC QP in the error state, which was connected to itself.
	FlushRC
	// FlushInit posts sends to an RC QP that went to the error state from INIT. It needs
	// neither an address nor a port, but many devices do not know the QP.
	FlushInit
	// FlushRecv posts receives to a QP in INIT, which then goes to the error state.
	FlushRecv
)

// Flushes returns every method, the best first.
func Flushes() []Flush { return []Flush{FlushUD, FlushRC, FlushInit, FlushRecv} }

// String says what is flushed.
func (f Flush) String() string {
	switch f {
	case FlushUD:
		return "sends posted to a UD QP in the error state"
	case FlushRC:
		return "sends posted to an RC QP in the error state"
	case FlushInit:
		return "sends posted to an RC QP that never was ready, in the error state"
	default:
		return "receives of a QP that goes into the error state"
	}
}

// Quiet returns the erratum by which the driver raises no event for what is flushed.
func (f Flush) Quiet(d errata.Driver) (errata.Erratum, bool) {
	if f == FlushRecv {
		return errata.Erratum{}, false
	}
	return d.Explains("notify_any", errata.ModeInError, 0)
}

// BeenReady reports whether the QP has been in RTS. A device must complete what it accepted
// from such a QP. It need not know others.
func (f Flush) BeenReady() bool { return f == FlushUD || f == FlushRC }

// Lacks records that the device has no QPs of a type.
func (s *Session) Lacks(t verbs.QPType, err error) { s.lacks[t] = err }

// Absent reports whether an error of ibv_create_qp can mean that the device has no QPs of the
// type, or that the process may have none. No attribute lists the types. Drivers return
// EOPNOTSUPP or EINVAL, and some libraries no errno.
func Absent(err error) bool {
	return verbs.IsNotSupported(err) || errors.Is(err, os.ErrPermission) ||
		errors.Is(err, syscall.EINVAL) || errors.Is(err, verbs.NoErrno)
}

// Flushing is a QP whose work requests are flushed.
type Flushing struct {
	Method Flush
	Port   int
	// QP is the newest QP. For sends it is in the error state.
	QP   verbs.QP
	Send verbs.SendWR
	Recv verbs.RecvWR

	scope *Scope
	pd    verbs.PD
	attr  verbs.QPInitAttr
	route Route
	used  bool
}

// FlushDepth is the usual depth of a QP of Flushing.
const FlushDepth = 4

// Flushing creates a QP with room for depth work requests, which are flushed by a method. They
// complete on the CQ flushed; idle is its other CQ. They use the elements of data. The error is
// a *RefusedError if the device does not support the method.
func (sc *Scope) Flushing(method Flush, flushed, idle verbs.CQ, data []verbs.SGE, depth int) (*Flushing, error) {
	f := &Flushing{Method: method, scope: sc}
	f.Send = verbs.SendWR{Flags: verbs.SendSignaled, SGEs: data}
	f.Recv = verbs.RecvWR{SGEs: data}
	f.attr = verbs.QPInitAttr{
		SendCQ: flushed, RecvCQ: idle,
		Cap: verbs.QPCap{MaxSendWR: uint32(depth), MaxRecvWR: uint32(depth), MaxSendSGE: 1, MaxRecvSGE: 1},
	}
	err := Catch(func() {
		f.pd = Must(sc.s.PD())
		f.route = sc.s.inState()
		switch method {
		case FlushUD:
			f.datagrams()
		case FlushRC:
			f.connected()
		case FlushInit:
			f.unready()
		default:
			f.receives(flushed, idle)
		}
	})
	f.Port = f.route.Port
	return f, err
}

func (f *Flushing) create(t verbs.QPType) (err error) {
	f.attr.Type = t
	f.scope.s.Expecting(Absent, func() { f.QP, err = f.scope.QP(f.pd, f.attr) })
	if err != nil && (Absent(err) || ObstacleOf(err) != nil) {
		return &RefusedError{Err: err}
	}
	return err
}

func (f *Flushing) change(attr verbs.QPAttr, mask verbs.QPAttrMask) {
	if err := f.QP.Modify(attr, mask); err != nil {
		Stop(Refused(fmt.Errorf("to %s: %w", attr.State, err)))
	}
}

func (f *Flushing) datagrams() {
	Stop(f.create(verbs.UD))
	addresses, err := f.scope.s.addresses(f.route.Port)
	if err != nil { // The loopback path reports it.
		Stop(&RefusedError{Err: err})
	}
	for _, r := range addresses {
		f.Send.AH, err = f.scope.AH(f.pd, r.AH)
		if err = Refused(err); !IsRefused(err) {
			break
		}
	}
	Stop(err)
	f.Send.RemoteQPN, f.Send.RemoteQKey = f.QP.Number(), verbs.UDQKey
	Stop(Refused(Connect(f.QP, f.QP, f.route)))
	f.change(verbs.ToError())
}

func (f *Flushing) connected() {
	routes, err := f.scope.s.SelfRoutes()
	if err != nil { // The loopback path reports it.
		Stop(&RefusedError{Err: err})
	}
	Stop(f.create(verbs.RC))
	for _, f.route = range routes {
		if err = Refused(Connect(f.QP, f.QP, f.route)); !IsRefused(err) {
			break
		}
		f.change(verbs.ToReset())
	}
	Stop(err)
	f.change(verbs.ToError())
}

func (f *Flushing) unready() {
	// Drivers of iWARP map their queues into the process and ignore what is posted after the
	// error.
	if t := f.scope.s.Device.Transport(); t == verbs.TransportIWARP {
		Stop(&RefusedError{Err: obstacle(state.SkipNotSupported, "%s does not look at what is posted there", t)})
	}
	Stop(f.create(verbs.RC))
	f.change(f.route.toInit(verbs.RC))
	f.change(verbs.ToError())
}

// SelfRoutes returns the routes of the first port that has any.
func (s *Session) SelfRoutes() ([]Route, error) {
	var errs []error
	for number := 1; number <= s.Attr.Ports; number++ {
		routes, err := s.Routes(number)
		if err == nil {
			return routes, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func (f *Flushing) receives(flushed, idle verbs.CQ) {
	f.attr.SendCQ, f.attr.RecvCQ = idle, flushed
	err := f.create(verbs.RC)
	if IsRefused(err) {
		err = f.create(verbs.UD)
	}
	Stop(err)
}

// Init returns the change of the QP of FlushRecv from RESET to INIT.
func (f *Flushing) Init() verbs.QPChange {
	attr, mask := f.route.toInit(f.attr.Type)
	return verbs.QPChange{Attr: attr, Mask: mask}
}

// Post posts work requests that are flushed. The error is a *RefusedError if the device
// does not take one.
func (f *Flushing) Post(ids ...uint64) error {
	if f.Method != FlushRecv {
		for _, f.Send.ID = range ids {
			if err := Refused(f.QP.PostSend(f.Send)); err != nil {
				return err
			}
		}
		return nil
	}
	// A QP that was used is replaced, since some devices never take one back to RESET.
	if f.used {
		if err := f.create(f.attr.Type); err != nil {
			return err
		}
	}
	f.used = true
	return flushRecv(f.QP, f.route, f.Recv, ids...)
}

// flushRecv posts receives to a QP in RESET, which goes through INIT to the error state.
func flushRecv(q verbs.QP, r Route, wr verbs.RecvWR, ids ...uint64) error {
	if err := q.Modify(r.toInit(q.Type())); err != nil {
		return fmt.Errorf("to INIT: %w", err)
	}
	for _, wr.ID = range ids {
		if err := q.PostRecv(wr); err != nil {
			return err
		}
	}
	if err := q.Modify(verbs.ToError()); err != nil {
		return fmt.Errorf("to ERR: %w", err)
	}
	return nil
}

// FlushRecv flushes a receive of a QP in RESET by the method of that name.
func (s *Session) FlushRecv(q verbs.QP, wr verbs.RecvWR) error {
	return flushRecv(q, s.inState(), wr, wr.ID)
}

// inState returns a route of a port in any state. Nothing is sent, so any partition will do.
func (s *Session) inState() Route {
	r := Route{Port: s.AnyPort()}
	if index, err := s.fullMember(r.Port); err == nil {
		r.PKeyIndex = index
	}
	return r
}

// NotFlushed returns the error of a device that supports none of the methods.
func NotFlushed(reasons ...error) *ObstacleError {
	reason := state.SkipNotSupported
	if errors.Is(errors.Join(reasons...), os.ErrPermission) {
		reason = state.SkipNotPermitted
	}
	return &ObstacleError{Reason: reason, Detail: "no work request is flushed: " + OneLine(reasons)}
}

// OneLine writes errors in one line.
func OneLine(list []error) string {
	if err := errors.Join(list...); err != nil {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return ""
}
