//go:build scale

package scale_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"rdma_exporter/test/running"
)

// process is a program that runs beside the test and listens.
type process struct {
	*running.Process
	// address is where it listens.
	address string
}

// launch starts a program and waits until it says where it listens. When the test
// ends, so does the program.
func launch(t testing.TB, name, program string, args ...string) *process {
	t.Helper()
	p := running.Launch(t, name, program, args...)
	return &process{Process: p, address: p.Listening(t)}
}

// get asks the process for a path. The header, of name and value, may be left out.
func (p *process) get(path string, header ...string) ([]byte, error) {
	request, err := http.NewRequest(http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", p.Name, err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Timeout: running.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", p.Name, err)
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", p.Name, err)
	}
	if response.StatusCode != http.StatusOK {
		return body, fmt.Errorf("%s answers %s to %s", p.Name, response.Status, path)
	}
	return body, nil
}
