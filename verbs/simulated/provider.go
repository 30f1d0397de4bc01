package simulated

import (
	"errors"
	"syscall"

	"rdma_exporter/verbs"
)

// Provider opens simulated devices. It implements verbs.Provider.
type Provider struct {
	err     error // what is wrong with the profile
	names   []string
	devices map[string]*hardware
	tracer  verbs.Tracer
}

// New returns the provider of the devices of a profile, which it copies. The
// tracer is told of every verb; it may be nil. If the profile is invalid, which
// one from ParseProfile never is, every method of the Provider fails.
func New(p *Profile, tracer verbs.Tracer) *Provider {
	if tracer == nil {
		tracer = verbs.NopTracer{}
	}
	s := &Provider{tracer: tracer, devices: make(map[string]*hardware)}
	if p == nil {
		s.err = errors.New("simulated devices: no profile")
		return s
	}
	if s.err = p.Validate(); s.err != nil {
		return s
	}
	s.names = p.Names()
	for _, d := range p.Devices {
		s.devices[d.Name] = newHardware(d.clone(), tracer)
	}
	return s
}

// PassTogether has the short times that verbs take pass together, when they have added up
// or the device is closed, for to wake a process costs more than most verbs do; it returns
// p. The tracer and measurements are told the times that verbs are to take; what anybody
// else times is shorter.
func (p *Provider) PassTogether() *Provider {
	for _, h := range p.devices {
		h.together = true
	}
	return p
}

// Open implements verbs.Provider (ibv_open_device). As with libibverbs, a device
// is looked for in the list of devices first (ibv_get_device_list).
func (p *Provider) Open(name string) (verbs.Device, error) {
	if p.err != nil {
		return nil, p.err
	}
	// The list is of no device, yet it is a device of the profile that has the
	// fault: the faults of all act.
	var acting []*countedFault
	for _, name := range p.names {
		acting = append(acting, p.devices[name].faults.next(verbs.GetDeviceList, facts{})...)
	}
	if err := run(p.tracer, "", verbs.GetDeviceList, sleep(0), acting, nil); err != nil {
		return nil, err
	}
	hw, ok := p.devices[name]
	if !ok {
		return nil, &verbs.Error{Verb: verbs.OpenDevice, Device: name, Errno: syscall.ENODEV}
	}
	d := &device{hw: hw, events: asyncEvents(hw.behaviour.profile.AsyncEvents)}
	d.object = object{kind: kindDevice, dev: d}
	err := hw.call(verbs.OpenDevice, func(int) *failure {
		if hw.behaviour.profile.Vanish {
			return fail(syscall.ENODEV, "the device is gone")
		}
		return hw.admit(&d.object, 0)
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// hardware is one device, which may be opened several times.
type hardware struct {
	name      string
	tracer    verbs.Tracer
	behaviour *behaviour
	faults    faults
	times     *times
	// together has times pass by way of debt.
	together bool
	debt     debt

	live   [kinds]int
	qps    map[uint32]*qp
	mrs    map[uint32]*mr
	groups map[group][]*qp
	// channels and cqs are those that were not destroyed, oldest first.
	channels         []*channel
	cqs              []*cq
	completionFaults completionFaults
	lastQPN          uint32
	lastKey          uint32
}

func newHardware(p DeviceProfile, tracer verbs.Tracer) *hardware {
	const firstQPN = 17 // the lower ones are reserved
	return &hardware{
		name: p.Name, tracer: tracer, behaviour: newBehaviour(p), faults: newFaults(p.Faults),
		times: newTimes(p.Name, p.CompletionLatency), completionFaults: newCompletionFaults(p.CompletionFaults),
		qps: make(map[uint32]*qp), mrs: make(map[uint32]*mr), groups: make(map[group][]*qp),
		lastQPN: firstQPN - 1,
	}
}
