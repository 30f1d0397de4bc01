package verbs

import (
	"errors"
	"fmt"
	"time"
)

// A Measurement says how [Device].Measure takes samples of how long a
// completion needs to reach the process. All its objects are of the device that
// measures. Nothing else may use them while it runs.
//
// One sample is: a receive is posted (if there is a Receiver), the CQ is armed
// (if there is a Channel), Send is posted, and the completion is awaited: with a
// Channel by its event, which is acknowledged before the CQ is polled; without
// one by polling the CQ without a pause.
type Measurement struct {
	// Sender is the QP on which Send is posted. Its ID is the number of the
	// sample, whatever it is here.
	Sender QP
	Send   SendWR
	// Receiver is the peer of Sender: Recv is posted on it before each sample.
	// The completion that is measured is then that of the receive. Nil if Send
	// needs no receive and its own completion is measured.
	Receiver QP
	Recv     RecvWR
	// Init, if not nil, has no message sent: receives are flushed. Before each
	// sample Receiver goes to RESET, from there to INIT by this change, and takes
	// Recv; in place of posting Send it goes to the error state. Sender and Other
	// are nil.
	Init *QPChange
	// CQ is where the measured completion arrives. It must be empty.
	CQ CQ
	// Other is where the sender's own completion arrives, which is taken after
	// each sample, outside the measured time. Nil means none.
	Other CQ
	// Channel is that of CQ. Nil for polling.
	Channel CompChannel
	// Bystander is a channel on which no event belongs. It is looked at when an
	// event does not come. It may be nil.
	Bystander CompChannel
	// SolicitedOnly is how the CQ is armed.
	SolicitedOnly bool
	// Status is what the measured completions must have.
	Status WCStatus
	// Warmup is how many samples are taken first and thrown away, and Samples how
	// many are kept. What goes wrong is counted in both.
	Warmup, Samples int
	// Deadline bounds each wait for an event or a completion ([Wait]).
	Deadline time.Duration
	// Budget bounds the time of all samples together: none is begun after it. The
	// measurement takes no longer than Budget and three times Deadline.
	Budget time.Duration
}

// QPChange is a modification of a QP: what [QP].Modify takes.
type QPChange struct {
	Attr QPAttr
	Mask QPAttrMask
}

// Validate returns an error that says which object or number no measurement can have, and the
// range that can be used. The first wrong one is reported. The device checks that objects are its
// own, and work requests. Any Budget will do: one that is used up before it begins takes no samples.
func (m Measurement) Validate() error {
	switch left := MaxSamples - m.Samples; {
	case m.Init == nil && m.Sender == nil:
		return errors.New("there is no sender")
	case m.Init != nil && (m.Sender != nil || m.Receiver == nil || m.Other != nil):
		return errors.New("receives are flushed on a receiver alone")
	case m.CQ == nil || m.CQ == m.Other:
		return errors.New("a CQ is missing, or one CQ has both completions of a sample")
	case m.Channel != nil && m.Channel == m.Bystander:
		return errors.New("the completion channel is its own bystander")
	case m.Samples < 1 || m.Samples > MaxSamples:
		return fmt.Errorf("%d samples: use a number from 1 to %d", m.Samples, MaxSamples)
	case m.Warmup < 0 || m.Warmup > left:
		return fmt.Errorf("%d samples for warming up before %d: use a number from 0 to %d", m.Warmup, m.Samples, left)
	case m.Deadline <= 0:
		return fmt.Errorf("a deadline of %s: use a time longer than 0s", m.Deadline)
	}
	return nil
}

// Samples is what a measurement found.
type Samples struct {
	// Latency is, of each sample that went well, the time from before
	// ibv_post_send (with Init: the ibv_modify_qp that flushes) to after ibv_get_cq_event, or, without a channel, to after the
	// ibv_poll_cq that returned the completion.
	Latency []time.Duration
	// Arm is the time within ibv_req_notify_cq of the samples of Latency; empty
	// without a channel.
	Arm []time.Duration
	// Missed counts the samples whose completion was in the CQ at the deadline
	// but whose event had not come.
	Missed int
	// Spurious counts the events that came when the CQ had no completion.
	Spurious int
	// Misdirected counts the events that came on the bystander or that named
	// another CQ. A sample whose event went astray so is not counted as missed.
	Misdirected int
	// Missing counts the completions, measured ones and others, that had not come
	// by the deadline.
	Missing int
	// Unsuccessful are the statuses of the completions that had another than they
	// should, in order.
	Unsuccessful []WCStatus
	// Stopped tells why there are fewer samples than asked for.
	Stopped Stop
}

// Stop is why a measurement ended before it had all samples.
type Stop int

// The reasons to end early.
const (
	// StopNone: it did not, or what is lacking was counted as gone wrong.
	StopNone Stop = iota
	// StopBudget: the budget was used up.
	StopBudget
	// StopMissed: MaxMissed samples had to be waited for to their deadline.
	StopMissed
	// StopMissing: a completion did not come. Were it to come later, it would
	// pass for that of another sample.
	StopMissing
	// StopUnsuccessful: a completion had a status that it should not; the QPs
	// are of no more use.
	StopUnsuccessful
)

// String says it in words.
func (s Stop) String() string {
	return name(int(s), "", "the time for it was used up", "too many events did not come",
		"a completion did not come", "a completion was unsuccessful")
}

// MaxMissed is how many events of a measurement may be missed before it ends.
const MaxMissed = 3

// MaxSamples limits the samples of a measurement, warm-up included.
const MaxSamples = 1 << 14

// Memory is what an object costs a process, in bytes: address space (VmSize), and memory that
// the kernel pins for it (VmPin).
type Memory struct{ Virtual, Locked uint64 }
