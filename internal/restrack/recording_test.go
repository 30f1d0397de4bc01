package restrack

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// A recording is what a kernel answered, and what rdma(8) printed then: a text
// file of sections, each headed by a line "-- NAME --". Sections of replies are
// named after the command, the device and, of a single object, its number; they
// have one line of hexadecimal digits for each datagram.
type recording struct {
	name     string
	sections map[string][]byte
}

// recordings returns those in testdata/netlink.
func recordings(t testing.TB) []recording {
	t.Helper()
	files, err := filepath.Glob("../../testdata/netlink/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in testdata/netlink: %v", err)
	}
	var all []recording
	for _, file := range files {
		text := running.Must(os.ReadFile(file))(t)
		r := recording{name: filepath.Base(file), sections: map[string][]byte{}}
		name := ""
		for line := range bytes.Lines(text) {
			if header := strings.TrimSpace(string(line)); strings.HasPrefix(header, "-- ") {
				name = strings.TrimSuffix(strings.TrimPrefix(header, "-- "), " --")
			} else if name != "" {
				r.sections[name] = append(r.sections[name], line...)
			}
		}
		if _, ok := r.sections["end"]; !ok && name != "end" {
			t.Fatalf("%s is cut off", file)
		}
		all = append(all, r)
	}
	return all
}

func (r recording) datagrams(t testing.TB, section string) [][]byte {
	t.Helper()
	text, ok := r.sections[section]
	if !ok {
		t.Fatalf("%s has no section %q", r.name, section)
	}
	var datagrams [][]byte
	for line := range strings.Lines(string(text)) {
		datagram, err := hex.DecodeString(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %s: %v", r.name, section, err)
		}
		datagrams = append(datagrams, datagram)
	}
	return datagrams
}

// payloads returns the payloads of the messages that a section has, without
// those that only end a dump.
func (r recording) payloads(t testing.TB, section string) [][]byte {
	t.Helper()
	var payloads [][]byte
	for _, datagram := range r.datagrams(t, section) {
		for len(datagram) > 0 {
			m, rest, err := nextMessage(datagram)
			if err != nil {
				t.Fatalf("%s: %s: %v", r.name, section, err)
			}
			datagram = rest
			if m.Header.Type>>10 == client {
				payloads = append(payloads, m.Data)
			}
		}
	}
	return payloads
}

// sectionName names the section with the replies to a request.
func sectionName(command uint16, index uint32, id ...uint32) string {
	name := fmt.Sprintf("%s of device %d", commandName(command), index)
	if command == commandDevice || command == commandSystem {
		name = commandName(command)
	}
	if len(id) > 0 {
		name += fmt.Sprintf(" number %d", id[0])
	}
	return name
}
