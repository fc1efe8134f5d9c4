package main

import (
	"bytes"
	"os"
	"testing"
)

func TestGenerated_UpToDate(t *testing.T) {
	for _, kind := range kinds {
		want, err := generate(kind)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../ecs/" + kind + "_gen.go")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("ecs/%s_gen.go differs from the output of its generator; run go generate ./ecs", kind)
		}
	}
}
