package main

import (
	"bytes"
	"os"
	"testing"
)

func TestTheQueriesAreWhatTheTemplateSays(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../ecs/query_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("ecs/query_gen.go is not what its generator writes; run go generate ./ecs")
	}
}
