package simulated

import (
	"math/rand/v2"
	"syscall"
	"time"

	"rdma_exporter/verbs"
)

// Provider opens simulated devices. It implements verbs.Provider.
type Provider struct {
	names   []string
	devices map[string]*hardware
	tracer  verbs.Tracer
}

// New returns the provider of the devices of a profile, which must be valid and must not
// change afterwards. The tracer sees every verb. It may be nil.
func New(p *Profile, tracer verbs.Tracer) *Provider {
	if tracer == nil {
		tracer = verbs.NopTracer{}
	}
	s := &Provider{names: p.Names(), tracer: tracer, devices: make(map[string]*hardware)}
	for _, d := range p.Devices {
		s.devices[d.Name] = newHardware(d, tracer)
	}
	return s
}

// Open implements verbs.Provider. Like libibverbs, it gets the list of devices first.
func (p *Provider) Open(name string) (verbs.Device, error) {
	// The list belongs to no device, so the faults of all devices act on it.
	var acting []*countedFault
	for _, name := range p.names {
		acting = append(acting, p.devices[name].acting(verbs.GetDeviceList, Call{})...)
	}
	if err := run(p.tracer, "", verbs.GetDeviceList, 0, acting, nil); err != nil {
		return nil, err
	}
	hw, ok := p.devices[name]
	if !ok {
		return nil, &verbs.Error{Verb: verbs.OpenDevice, Device: name, Errno: syscall.ENODEV}
	}
	d := &device{hardware: hw}
	for _, name := range hw.profile.AsyncEvents {
		e := verbs.AsyncEvent{Type: value(name, verbs.EventCQErr, verbs.EventWQFatal)}
		if e.Type.OfPort() {
			e.Port = 1
		}
		d.events = append(d.events, e)
	}
	d.object = object{kind: kindDevice, dev: d}
	err := hw.call(verbs.OpenDevice, Call{}, func(int) *failure {
		if hw.profile.Vanish {
			return fail(syscall.ENODEV, "the device is gone")
		}
		return hw.admit(&d.object, 0)
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

type hardware struct {
	behaviour

	name   string
	tracer verbs.Tracer
	faults []*countedFault
	// delays is the time that the profile added to verbs and events so far.
	delays time.Duration
	times  *rand.Rand // draws the times of completions

	live [kinds]int
	qps  map[uint32]*qp
	mrs  map[uint32]*mr
	// channels and cqs are those that were not destroyed, oldest first.
	channels         []*channel
	cqs              []*cq
	completionFaults []*countedCompletionFault
	lastQPN          uint32
	lastKey          uint32
}

func newHardware(p DeviceProfile, tracer verbs.Tracer) *hardware {
	const firstQPN = 17 // the lower ones are reserved
	var seed [32]byte   // the times come in the same order whenever the name is the same
	copy(seed[:], p.Name)
	h := &hardware{
		behaviour: newBehaviour(p), name: p.Name, tracer: tracer, times: rand.New(rand.NewChaCha8(seed)),
		qps: make(map[uint32]*qp), mrs: make(map[uint32]*mr), lastQPN: firstQPN - 1,
	}
	numbers := errnos()
	for _, f := range p.Faults {
		h.faults = append(h.faults, &countedFault{Fault: f, errno: numbers[f.Errno]})
	}
	for _, f := range p.CompletionFaults {
		status := value(f.Status, verbs.WCSuccess, verbs.WCGeneralErr)
		h.completionFaults = append(h.completionFaults, &countedCompletionFault{CompletionFault: f, status: status})
	}
	return h
}
