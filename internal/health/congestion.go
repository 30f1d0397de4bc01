package health

import (
	"fmt"

	"rdma_exporter/internal/health/congestion"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const pausedInfo, pausedWarning = 0.01, 0.1 // Shares of the time.

func (h *History) recordCongestion(d *state.DeviceState) {
	if r := currentHardware(d.Hardware); r != nil {
		put(h.Congestion, d.Name, congestion.Next(h.Congestion[d.Name], d.Hardware.Read, r))
	}
}

func (a *assessor) congested(of string, port int) {
	c := a.congestion[port]
	var pauses, notified string
	if c.Paused >= pausedInfo {
		pauses = fmt.Sprintf("priority %s of %s was paused for %s of the time", text.Name(c.Priority), of, text.Percent(int64(c.Paused*1e6), 1e6))
	}
	if c.Unusual() {
		notified = fmt.Sprintf("%s got %.2g CNPs for a thousand packets sent, usually %.2g", of, c.CNPs*1e3, c.Usual*1e3)
	}
	if what := text.JoinWords("; ", pauses, notified); what != "" {
		a.add(observation{
			kind: FindingCongested, severity: warningIf(c.Paused >= pausedWarning), subject: of, size: c.Paused + c.CNPs,
			message: fmt.Sprintf("In the %s up to %s %s.", text.Age(c.Over), text.Moment(c.At), what),
		})
	}
}
