package format

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/build"
	"github.com/stet-ecs/stet/journal"
)

func TestDecode_NewerFormat(t *testing.T) {
	tick := NewTickEncoder()
	tick.Begin(nil, false, false, journal.ID{}, 1, time.Unix(0, 0))
	tick.Registry(raw.EntityChange{}, nil)
	tick.Storages(0)
	for name, c := range map[string]struct {
		encoded []byte
		newest  byte
		decode  func([]byte) error
	}{
		"tick":     {tick.End(new(Notes)), editedTick, func(b []byte) error { _, err := DecodeTick(b); return err }},
		"schema":   {NewSchema().Encode(), evolvedSchema, func(b []byte) error { _, err := DecodeSchema(b); return err }},
		"manifest": {(&Manifest{Schema: NewSchema()}).Encode(), largeManifest, func(b []byte) error { _, err := DecodeManifest(b); return err }},
	} {
		require.NoError(t, c.decode(c.encoded), name)
		c.encoded[1] = c.newest
		require.NotErrorIs(t, c.decode(c.encoded), ErrNewer, name)
		c.encoded[1] = c.newest + 1
		require.ErrorIs(t, c.decode(c.encoded), ErrNewer, name)
	}
}

// The text about the writing program is optional. An invalid text counts as unknown.
func TestManifest_StoresBuildText(t *testing.T) {
	for text, want := range map[string]string{build.Here(): build.Here(), "": "", "a\nb": "", strings.Repeat("x", 256): ""} {
		m := &Manifest{Schema: NewSchema()}
		require.Empty(t, m.Build())
		m.SetBuild(text)
		got, err := DecodeManifest(m.Encode())
		require.NoError(t, err)
		require.Equal(t, want, got.Build(), "%q", text)
		require.False(t, got.Features[0].Required)
	}
}

func TestManifest_UnknownFeatures(t *testing.T) {
	m := &Manifest{Schema: NewSchema(), Features: []Feature{{Name: "waves"}}}
	got, err := DecodeManifest(m.Encode())
	require.NoError(t, err)
	require.Equal(t, m.Features, got.Features)
	m.Features = append(m.Features, Feature{"tides\n", true})
	_, err = DecodeManifest(m.Encode())
	require.ErrorIs(t, err, ErrNewer)
	require.ErrorContains(t, err, `"tides\n"`)

	m = &Manifest{Schema: NewSchema(), Repeats: true, Features: []Feature{{Name: "waves"}}}
	got, err = DecodeManifest(m.Encode())
	require.NoError(t, err)
	require.True(t, got.Repeats)
	require.Equal(t, m.Features, got.Features, "Features must not contain required features")
}

func TestNotes_SizeLimits(t *testing.T) {
	n, big := new(Notes), make([]byte, 1000)
	require.NoError(t, n.AddInput("big", big))
	require.Greater(t, n.size, len(n.inputs.Buf))
	n.size = maxNoted - 1000 // Simulates many earlier notes.
	require.ErrorIs(t, n.AddInput("big", big), journal.ErrTooLong)
	require.NoError(t, n.AddInput("small", big[:100]))
}
