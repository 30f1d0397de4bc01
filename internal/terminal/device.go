package terminal

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// inShort writes what is not as it should be on one of several devices, without the
// findings at the top.
func (p *page) inShort(s *api.Status, place int, top told) {
	d := &s.Devices[place]
	p.blank()
	p.heading(d)
	p.untold(s, place, top)
	if len(d.Findings) == 0 {
		p.wrap(0, 0, p.of(plain, d.Headline))
	}
	p.ports(s, d)
	p.stuck(d)
	p.run("Probes", d.Run, p.probeNames(d)...)
	if d.Contracts != nil {
		p.contractRun(d.Contracts)
	}
	p.inventory(d.Resources)
}

// untold writes the findings of a device that are not told at the top, or not with what
// they say of it.
func (p *page) untold(s *api.Status, place int, top told) {
	d := &s.Devices[place]
	for i := range d.Findings {
		f := &d.Findings[i]
		whole, like := top[api.Place{Device: place, Finding: i}]
		if whole || f.Accepted != nil {
			continue
		}
		action := f.Action
		if like {
			action = ""
		}
		p.advice(severityStyle(f.Severity), strings.ToUpper(string(f.Severity)), action, said{
			subject: fmt.Sprintf("%s (%s)%s", f.Subject, f.Kind, since(s, f)), message: f.Message + beneath(f),
		})
	}
}

// device writes all that there is to say of one device, by its place among them, without
// the findings at the top.
func (p *page) device(s *api.Status, place int, top told) {
	d := &s.Devices[place]
	p.blank()
	p.heading(d)
	p.untold(s, place, top)
	if len(d.Findings) == 0 || d.Health == api.HealthOK || d.Health == api.HealthUnknown {
		p.wrap(0, 0, p.of(plain, d.Headline))
	}
	if !d.Present {
		p.labelled("Gone", p.of(bad, "This device is gone from the host."))
	}
	if d.Identity != nil {
		p.labelled("Device", p.of(plain, identityText(d.Identity)))
	}
	p.ports(s, d)
	p.hardware(d)
	p.stuck(d)
	p.probes(d)
	p.contracts(d.Contracts)
	p.known(d)
	p.accepted(s, d)
	p.inventory(d.Resources)
	p.sizes(d)
	p.latencies(d.Latencies)
	p.ways(d.Ways)
	p.vectors(d)
	p.resources(d.Resources, d.Identity != nil)
}

// stuck writes which processes have not ended.
func (p *page) stuck(d *api.Device) {
	for _, stuck := range d.Stuck {
		line := fmt.Sprintf("process %d of the %s was killed at %s but has not ended", stuck.PID, kindName(stuck.Kind), text.Moment(stuck.Since))
		if stuck.Verb != "" {
			line += ", in " + stuck.Verb
		}
		p.labelled("Stuck", p.of(bad, line))
	}
}

// heading writes the name of a device across the page.
func (p *page) heading(d *api.Device) {
	rule := "="
	if p.screen.Unicode {
		rule = "═"
	}
	name, health := p.of(strong, d.Name), p.of(healthStyle(d.Health), string(d.Health))
	p.put(p.of(faint, strings.Repeat(rule, 2)+" "), name, p.of(plain, ": "), health, p.of(plain, " "))
	at := 6 + columns(name.text) + columns(health.text)
	p.line(p.of(faint, strings.Repeat(rule, max(p.screen.width()-at, 2))))
}

// kindName is what people call a kind of run.
func kindName(k state.Kind) string {
	switch k {
	case state.KindProbe, "":
		return "probes"
	case state.KindContract:
		return "contracts"
	case state.KindInventory:
		return "inventory"
	default:
		return string(k)
	}
}

// identityText is what a device says of itself.
func identityText(i *api.Identity) string {
	firmware, guid, driver := "no firmware", "", ""
	if i.Driver != "" {
		driver = "driver " + i.Driver
	}
	if i.Firmware != "" {
		firmware = "firmware " + i.Firmware
	}
	if i.NodeGUID != "" {
		guid = "GUID " + i.NodeGUID
	}
	return joined(", ", driver, i.Transport, firmware,
		fmt.Sprintf("vendor 0x%04x, part %d, hardware 0x%x", i.VendorID, i.VendorPartID, i.HWVersion), guid,
		text.Plural(i.CompletionVectors, "completion vector"))
}

// run writes how a run ended.
func (p *page) run(label string, r *api.Run, more ...span) {
	if r == nil {
		p.labelled(label, append([]span{p.of(faint, "not run")}, more...)...)
		return
	}
	text := []span{p.of(outcomeStyle(r.Outcome), string(r.Outcome)), p.of(plain, " in "+duration(r.Duration))}
	if r.Error != "" {
		text = append(text, p.of(plain, ": "+r.Error))
	}
	for _, e := range r.Events {
		text = append(text, p.of(odd, "; event: "+e.String()))
	}
	if r.Light != nil {
		text = append(text, p.of(odd, "; light: "+r.Light.Detail))
	}
	p.labelled(label, append(text, more...)...)
}

// probeNames says of each probe how it did.
func (p *page) probeNames(d *api.Device) []span {
	var names []span
	for _, probe := range d.Probes {
		s := faint
		switch probe.Status {
		case state.StatusOK:
			s = good
		case state.StatusFailed:
			s = bad
		}
		names = append(names, p.of(plain, ", "+probe.Name+" "), p.of(s, string(probe.Status)))
	}
	if len(names) > 0 {
		names[0] = p.of(plain, "; "+d.Probes[0].Name+" ")
	}
	return names
}

// probes writes how the probes did, and what failed and was skipped.
func (p *page) probes(d *api.Device) {
	p.run("Probes", d.Run, p.probeNames(d)...)
	for _, probe := range d.Probes {
		for _, f := range probe.Failures {
			p.labelled("", p.of(bad, "failed: "), p.of(plain, joined(": ", probe.Name, f.Subject, f.Message)+inBrackets(f.Verb, f.Errno, f.Message)))
		}
		for _, s := range probe.Skips {
			p.labelled("", p.of(faint, "skipped: "), p.of(plain, joined(": ", probe.Name, s.Subject, s.Detail)+" ("+string(s.Reason)+")"))
		}
	}
}

// joined joins those of the words that there are.
func joined(separator string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), separator)
}

// inBrackets returns those words in brackets that a message does not say.
func inBrackets(verb, errno, message string) string {
	var missing []string
	for _, word := range []string{verb, errno} {
		if word != "" && !strings.Contains(message, word) {
			missing = append(missing, word)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return " (" + strings.Join(missing, " ") + ")"
}

// contracts writes how the device keeps the contracts: those that it does not keep,
// with the evidence, and those that were not judged, by reason.
func (p *page) contracts(c *api.Contracts) {
	if c == nil {
		p.run("Contracts", nil)
		return
	}
	if c.PutOff != nil {
		p.labelled("Contracts", p.of(odd, "put off: "+c.PutOff.Detail))
		if c.Run == nil {
			return
		}
	}
	p.contractRun(c)
	for _, v := range c.Verdicts {
		switch v.Verdict {
		case state.VerdictViolated:
			if v.Known {
				continue
			}
			p.labelled("", p.of(severityStyle(v.Severity), "violated: "), p.of(strong, v.Name), p.of(plain, fmt.Sprintf(" (%s)", v.Severity)))
			for _, line := range []struct{ label, text string }{{"asked: ", v.Asked}, {"expected: ", v.Expected}, {"observed: ", v.Observed}} {
				if line.text != "" {
					p.labelled("", p.of(faint, line.label), p.of(plain, line.text))
				}
			}
		case state.VerdictSkipped:
			p.labelled("", p.of(faint, "skipped: "), p.of(plain, joined(": ", v.Name, v.Observed)+" ("+string(v.Reason)+")"))
		}
	}
}

// contractRun writes how the contract run went, and how many contracts the device keeps.
func (p *page) contractRun(c *api.Contracts) {
	p.run("Contracts", c.Run, p.of(plain, "; "), p.of(plain, fmt.Sprintf("%d hold", c.Holds)), p.of(plain, ", "),
		p.of(violatedStyle(c), fmt.Sprintf("%d violated", unexpected(c))), p.of(plain, knownViolated(c)), p.of(plain, fmt.Sprintf(", %d skipped", c.Skipped)))
}

func violatedStyle(c *api.Contracts) style {
	if unexpected(c) > 0 {
		return odd
	}
	return plain
}

// unexpected is how many contracts are violated that the driver is not known to break.
func unexpected(c *api.Contracts) int { return c.Violated - c.KnownViolated }

// knownViolated says how many contracts the driver is known to break, and does.
func knownViolated(c *api.Contracts) string {
	if c.KnownViolated == 0 {
		return ""
	}
	return fmt.Sprintf(", %d violated as the driver is known to", c.KnownViolated)
}

// known writes what is known of the driver, in short: no action is needed about
// it, but for programs that rely on the opposite.
func (p *page) known(d *api.Device) {
	label := "Known"
	for _, k := range d.Known {
		text := joined(" ", k.Fact, k.Remedy)
		if k.Verdict == state.VerdictHolds {
			text = "kept here, although the driver is known to break it: " + text
		}
		p.labelled(label, p.of(faint, k.Contract+": "), p.of(plain, text))
		label = ""
	}
}

// accepted writes what is accepted, in short.
func (p *page) accepted(s *api.Status, d *api.Device) {
	for i, line := range acceptedOf(s, d) {
		p.labelled(ownersLabel("Accepted", i), p.of(faint, line))
	}
}

// acceptedOf says of each finding that is accepted why it is, and until when.
func acceptedOf(s *api.Status, d *api.Device) []string {
	var all []string
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.Accepted == nil {
			continue
		}
		until := ""
		if !f.Accepted.Until.IsZero() {
			until = " (until " + text.Date(f.Accepted.Until) + ")"
		}
		all = append(all, fmt.Sprintf("%s, %s, %s%s: %s%s", f.Kind, f.Subject, f.Severity, since(s, f), f.Accepted.Reason, until))
	}
	return all
}

// inventory writes how the inventory went.
func (p *page) inventory(r *api.Resources) {
	if r == nil {
		p.run("Resources", nil)
		return
	}
	var more []span
	if r.Taken.IsZero() {
		more = append(more, p.of(odd, "; the objects on the device are not known"))
	} else if r.PIDsVisible != nil && !*r.PIDsVisible {
		more = append(more, p.of(odd, "; the processes of the host cannot be seen: owners and orphans are unknown"))
	}
	p.run("Resources", r.Run, more...)
}
