package ceiling

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/text"
	"rdma_exporter/verbs"
)

const (
	// mostAtOnce is the most objects that are created between two looks at the memory.
	mostAtOnce = 1024
	// hostReserve is the part of the host's memory, in per cent, that stays available.
	hostReserve = 10
	// tellEvery is how often a climb tells how far it has got.
	tellEvery = 500 * time.Millisecond
	// leastGivingBack is how long everything may take to be destroyed, or twice as long
	// as the climb took, if that is longer. Then the end of the process does that.
	leastGivingBack = time.Minute
)

// Memory is what a process has of the host's memory, in bytes.
type Memory struct {
	// Resident is what the process has in memory, and Locked what it holds in place.
	Resident, Locked int64
	// Available is what the host has left for programs, of Total.
	Available, Total int64
}

// Host is where a climb happens.
type Host interface {
	// Memory returns what the process has, and the host.
	Memory() (Memory, error)
	// Limits returns what else than the device may refuse objects to the process.
	Limits() (Limits, error)
}

// Options are those of a climb.
type Options struct {
	Provider verbs.Provider
	Device   string
	Config   Config
	Host     Host
	// Now is the clock.
	Now func() time.Time
	// Tell is told how far the climb has got: when a phase begins, now and then, and
	// at the end.
	Tell func(Report)
}

// An object is what can be destroyed.
type object interface{ Close() error }

// A climb is one that goes on.
type climb struct {
	Options
	report Report
	// began is when the phase began, and told when Tell was last called.
	began, told time.Time
	// before is the memory before the climb.
	before Memory
	// needs are what the objects need, in the order of their creation.
	needs, objects []object
}

// Climb creates objects until one is refused or a budget is used up, and destroys them.
func Climb(o Options) Report {
	k := o.Config.Type.kind()
	c := &climb{Options: o, report: Report{Version: Version, Device: o.Device, Type: o.Config.Type, Limit: k.limit}}
	c.begin(PhaseClimbing)
	c.report.Began = c.began.UTC()
	if create, err := c.prepare(); err != nil {
		c.fail(err)
	} else {
		c.begin(PhaseClimbing)
		c.up(create)
	}
	c.report.Seconds = c.Now().Sub(c.began).Seconds()
	c.giveBack()
	c.begin(PhaseEnded)
	return c.report
}

// begin begins a phase.
func (c *climb) begin(p Phase) {
	c.report.Phase, c.began = p, c.Now()
	c.tell(c.began)
}

func (c *climb) tell(now time.Time) {
	c.told = now
	if c.Tell != nil {
		c.Tell(c.report)
	}
}

// tellSometimes tells how far the climb has got, if that has not just been done.
func (c *climb) tellSometimes(now time.Time) {
	if now.Sub(c.told) >= tellEvery {
		c.tell(now)
	}
}

// prepare opens the device, creates what the objects need, and returns how to create
// one of them.
func (c *climb) prepare() (create func() (object, error), err error) {
	if c.before, err = c.Host.Memory(); err != nil {
		return nil, err
	}
	device, err := c.Provider.Open(c.Device)
	if err != nil {
		return nil, err
	}
	c.needs = append(c.needs, device)
	attr, err := device.Query()
	if err != nil {
		return nil, err
	}
	c.report.Firmware = text.Clean(attr.Firmware)
	claimed := int64(c.Config.Type.kind().claimed(attr.Limits))
	c.report.Claimed = &claimed
	switch c.Config.Type {
	case CQ:
		return func() (object, error) { return device.CreateCQ(verbs.CQInitAttr{Entries: 1}) }, nil
	case PD:
		return func() (object, error) { return device.AllocPD() }, nil
	}
	pd, err := device.AllocPD()
	if err != nil {
		return nil, err
	}
	c.needs = append(c.needs, pd)
	switch c.Config.Type {
	case MR:
		return func() (object, error) { return pd.RegMR(1, verbs.AccessLocalWrite) }, nil
	case SRQ:
		return func() (object, error) { return pd.CreateSRQ(verbs.SRQAttr{MaxWR: 1, MaxSGE: 1}) }, nil
	case AH:
		return handles(device, pd, attr.Ports)
	default:
		return c.queuePairs(device, pd)
	}
}

// queuePairs returns how to create a queue pair, of the first type that the device has.
func (c *climb) queuePairs(device verbs.Device, pd verbs.PD) (func() (object, error), error) {
	cq, err := device.CreateCQ(verbs.CQInitAttr{Entries: 1})
	if err != nil {
		return nil, err
	}
	c.needs = append(c.needs, cq)
	init := verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}}
	create := func() (object, error) { return pd.CreateQP(init) }
	err = errors.New("the device has no type of queue pair")
	for _, t := range device.QPTypes() {
		if t == verbs.RawPacket {
			continue // It needs a privilege.
		}
		init.Type = t
		var first object
		if first, err = create(); err == nil {
			c.report.QPType = t.Label()
			return create, first.Close()
		}
		if !verbs.IsNotSupported(err) {
			// What refuses the first one refuses it again, and is judged then.
			c.report.QPType = t.Label()
			return create, nil
		}
	}
	return nil, err
}

// handles returns how to create an address handle, of the first port that has an
// address.
func handles(device verbs.Device, pd verbs.PD, ports int) (create func() (object, error), err error) {
	table, err := device.GIDTable()
	if err != nil {
		return nil, err
	}
	err = errors.New("the device has no port")
	for number := 1; number <= ports; number++ {
		var port verbs.PortAttr
		if port, err = device.QueryPort(number); err != nil {
			return nil, err
		}
		var ways []verbs.AHAttr
		if ways, err = verbs.ToSelf(number, port, table); err != nil {
			continue
		}
		for _, way := range ways {
			create = func() (object, error) { return pd.CreateAH(way) }
			var first object
			if first, err = create(); err == nil {
				return create, first.Close()
			}
		}
	}
	return nil, err
}

// up creates objects, in batches that grow, until one is refused or a budget is used up.
func (c *climb) up(create func() (object, error)) {
	deadline := c.began.Add(c.Config.Within)
	for batch := int64(1); ; {
		left, err := c.memoryLeft()
		if err != nil {
			c.fail(err)
			return
		}
		if c.report.EndedBy != "" {
			return
		}
		for range c.atOnce(batch, left) {
			now := c.Now()
			if !now.Before(deadline) {
				c.end(EndTime, fmt.Sprintf("%s were used up (--within)", c.Config.Within))
				return
			}
			c.tellSometimes(now)
			o, err := create()
			if err != nil {
				c.refused(err)
				return
			}
			c.objects = append(c.objects, o)
			c.report.Objects++
			c.report.Left++
		}
		if batch < mostAtOnce {
			// Whatever ends the process early, some of what it reached is known.
			c.tell(c.told)
			batch *= 2
		}
	}
}

// atOnce returns how many objects to create before the next look at the memory: as many
// as the batch has, or as need half of what is left by what one has cost until now.
func (c *climb) atOnce(batch, left int64) int64 {
	if c.report.Objects == 0 || c.report.MemoryBytes <= 0 {
		return batch
	}
	cost := max(1, c.report.MemoryBytes/c.report.Objects)
	return max(1, min(batch, left/cost/2))
}

// memoryLeft looks at the memory. It returns how much of the budget is left, and ends the
// climb if there is nothing.
//
// A driver takes memory of the kernel, too, which is in no figure of the process: so what
// the host has less available than before counts, if that is more.
func (c *climb) memoryLeft() (int64, error) {
	m, err := c.Host.Memory()
	if err != nil {
		return 0, err
	}
	// What is locked is mostly resident, too.
	own := max(m.Resident-c.before.Resident, m.Locked-c.before.Locked)
	c.report.MemoryBytes = max(0, own, c.before.Available-m.Available)
	left := c.Config.Memory - c.report.MemoryBytes
	reserve := m.Total / 100 * hostReserve
	switch {
	case left <= 0:
		c.end(EndMemory, fmt.Sprintf("%s of %s were used up (--memory)", text.Bytes(c.report.MemoryBytes), text.Bytes(c.Config.Memory)))
	case m.Available <= reserve:
		c.end(EndMemory, fmt.Sprintf("the host has %s available, and %d %% of its %s are left alone", text.Bytes(m.Available), hostReserve, text.Bytes(m.Total)))
	}
	return min(left, m.Available-reserve), nil
}

// end tells what ended the climb.
func (c *climb) end(by End, detail string) {
	c.report.EndedBy, c.report.Detail = by, detail
}

// fail ends the climb with an error that tells of no limit.
func (c *climb) fail(err error) {
	c.end(EndError, text.Clean(err.Error()))
	c.blame(err)
}

// blame tells which verb failed, and how, if one did.
func (c *climb) blame(err error) {
	var v *verbs.Error
	if errors.As(err, &v) {
		c.report.Verb, c.report.Errno = string(v.Verb), verbs.ErrnoName(v.Errno)
	}
}

// refused ends the climb at a refusal.
func (c *climb) refused(err error) {
	c.blame(err)
	limits, limitsErr := c.Host.Limits()
	by, detail := judge(err, c.Config.Type, c.report.Objects, limits)
	if limitsErr != nil {
		detail += "; which limits the process has could not be told: " + limitsErr.Error()
	}
	c.end(by, text.Clean(detail))
}

// giveBack destroys everything, the newest first, as far as there is time.
func (c *climb) giveBack() {
	took := c.Now().Sub(c.began)
	c.begin(PhaseGivingBack)
	deadline := c.began.Add(max(leastGivingBack, 2*took))
	c.report.GivenBack = ByVerbs
	for len(c.objects) > 0 && c.Now().Before(deadline) {
		last := len(c.objects) - 1
		c.destroy(c.objects[last])
		c.objects[last], c.objects = nil, c.objects[:last]
		c.tellSometimes(c.Now())
	}
	if len(c.objects) > 0 {
		c.leave("there was no time to destroy them")
	}
	for _, o := range slices.Backward(c.needs) {
		// It is of no use to destroy what is in use.
		if c.report.Left == 0 {
			if err := o.Close(); err != nil {
				c.leave(err.Error())
			}
		}
	}
	c.report.GivingBackSeconds = c.Now().Sub(c.began).Seconds()
}

// destroy destroys an object.
func (c *climb) destroy(o object) {
	if err := o.Close(); err != nil {
		c.leave(err.Error())
		return
	}
	c.report.Left--
}

// leave tells why the end of the process has to give something back.
func (c *climb) leave(why string) {
	c.report.GivenBack = ByKernel
	if c.report.LeftDetail == "" {
		c.report.LeftDetail = text.Clean(why)
	}
}
