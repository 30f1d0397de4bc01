package restrack

import "testing"

func TestWhole(t *testing.T) {
	for release, want := range map[string]bool{
		"6.1.0-28-amd64": true, "5.5.0": true, "5.15": true, "10.0": true, "5.5-rc1": true,
		"5.4.0-200-generic": false, "4.18.0-553.el8_10.x86_64": false, "5": false, "": false, "linux": false, "-6.1": false,
	} {
		if got := whole(release); got != want {
			t.Errorf("%q: %t, want %t", release, got, want)
		}
	}
	if !Whole() {
		t.Error("the kernel of this test is older than 5.5, or cannot be told")
	}
}
