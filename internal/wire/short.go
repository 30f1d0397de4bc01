package wire

import (
	"bytes"
	"strconv"
	"time"

	"rdma_exporter/internal/state"
)

// All but some of the hundreds of lines of a report say that a verb is called, or that
// it returned and did not fail. They are written and read without encoding/json, to
// which each would be a document of its own: that took more time than the rest of what
// a run costs the parent. Whatever is written in another way is left to encoding/json.
const (
	beginHead = `{"begin":"`
	beginTail = `"}`
	callHead  = `{"call":{"verb":"`
	callNS    = `","ns":`
	callTail  = `}}`
)

// appendBegin appends the line with which a verb begins; ok is false if it has to be
// encoded.
func appendBegin(b []byte, verb string) (line []byte, ok bool) {
	if !isVerb(verb) {
		return b, false
	}
	b = append(append(b, beginHead...), verb...)
	return append(b, beginTail+"\n"...), true
}

// appendCall appends the line with which a verb returned; ok is false if it has to be
// encoded.
func appendCall(b []byte, c *state.Call) (line []byte, ok bool) {
	if c.Errno != "" || c.Expected || !isVerb(c.Verb) {
		return b, false
	}
	b = append(append(append(b, callHead...), c.Verb...), callNS...)
	return append(strconv.AppendInt(b, int64(c.Duration), 10), callTail+"\n"...), true
}

// foldShort adds a line to run if it is one of those, and tells whether it was.
func foldShort(b []byte, run *state.Run) bool {
	if name, ok := between(b, beginHead, beginTail); ok {
		verb := string(name)
		if !isVerb(verb) {
			return false
		}
		run.Verb = verb
		return true
	}
	rest, ok := between(b, callHead, callTail)
	if !ok || len(run.Calls) >= maxCalls {
		return false
	}
	name, digits, _ := bytes.Cut(rest, []byte(callNS))
	ns, ok := number(digits)
	verb := run.Verb
	if string(name) != verb {
		verb = string(name)
	}
	if !ok || !isVerb(verb) {
		return false
	}
	run.Verb = ""
	run.Calls = append(run.Calls, state.Call{Verb: verb, Duration: time.Duration(ns)})
	return true
}

// between returns what is between the head and the tail of b.
func between(b []byte, head, tail string) (middle []byte, ok bool) {
	middle, ok = bytes.CutPrefix(b, []byte(head))
	if !ok {
		return nil, false
	}
	return bytes.CutSuffix(middle, []byte(tail))
}

// number reads a number as JSON has it, of so few digits that it fits.
func number(digits []byte) (n int64, ok bool) {
	const most = 18
	if len(digits) == 0 || len(digits) > most || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = 10*n + int64(d-'0')
	}
	return n, true
}
