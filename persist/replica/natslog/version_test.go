package natslog

import "testing"

func TestOlder_ServerVersions(t *testing.T) {
	for v, want := range map[string]bool{
		"2.15.0": false, "2.15.2": false, "2.16.0-RC.1": false, "3.0.0": false, "2.15.0-beta.1": false,
		"2.14.9": true, "1.99.99": true, "": true, "2": true, "dev": true,
	} {
		if got := older(v); got != want {
			t.Errorf("older(%q) = %v, want %v", v, got, want)
		}
	}
}
