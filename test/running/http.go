package running

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
)

// Get returns what is at an address. A status other than 200 is an error, with which the body comes,
// too. Without a client, it waits for [Patience] at most.
func Get(client *http.Client, url string) ([]byte, error) {
	response, err := cmp.Or(client, &http.Client{Timeout: Patience}).Get(url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.300s", url, response.Status, body)
	}
	return body, err
}

// FreePort returns a port that nobody listens on. It is below those that the kernel gives to programs
// that ask for any.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := fmt.Sprint(20000 + rand.IntN(10000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			Check(t, l.Close())
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}
