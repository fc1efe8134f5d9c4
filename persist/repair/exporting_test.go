package repair_test

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

func exported(t require.TestingT, im *inspect.Image, lines bool) string {
	var b bytes.Buffer
	require.NoError(t, repair.Export(storetest.Background, im, &b, lines))
	return b.String()
}

// A compacted store lists its snapshots and segments, so a missing file is reported as damage.
func TestCompact_ReportsMissingFiles(t *testing.T) {
	s := storetest.NewSample(t)
	v, err := inspect.OpenReadOnly(storetest.Background, s.Dir)
	require.NoError(t, err)
	defer v.Close()
	out := filepath.Join(t.TempDir(), "out")
	_, err = repair.Compact(storetest.Background, v, out, repair.CompactOptions{Keep: "@first"})
	require.NoError(t, err)
	for _, name := range slices.Concat(storetest.Segments(t, out), storetest.Snapshots(t, out)) {
		dir := storetest.CopyDir(t, out)
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
		v, err := inspect.OpenReadOnly(storetest.Background, dir)
		require.NoError(t, err)
		require.ErrorContains(t, errors.Join(v.Damage()...), name)
		require.NoError(t, v.Close())
	}
}

func TestExport_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := storetest.NewSession(rt, 8)
		s.Do(storetest.AnyFill(rt)...)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			s.Step(rt)
		}
		v := s.View()
		defer v.Close()
		im, err := v.At(storetest.Background, rapid.SampledFrom(slices.Sorted(maps.Keys(s.States))).Draw(rt, "seq"))
		require.NoError(rt, err)
		lines := rapid.Bool().Draw(rt, "lines")
		text := exported(rt, im, lines)
		got, err := repair.Import(storetest.Background, strings.NewReader(text), false)
		require.NoError(rt, err, text)
		require.Equal(rt, im.Internal().Stored().Encode(), got.Internal().Stored().Encode())
		require.Equal(rt, im.Digest(), got.Digest())
		require.Equal(rt, text, exported(rt, got, lines))
	})
}

func TestImport_ToSaveAndStore(t *testing.T) {
	w := storetest.New(0)
	w.Fill(30)
	w.Destroy(w.Entities()[3])
	w.Commit()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.save")
	require.NoError(t, persist.Save(storetest.Background, file, w.World))
	v := storetest.Verified(t, file)
	im, err := v.At(storetest.Background, v.Head())
	require.NoError(t, err)
	again, err := repair.Import(storetest.Background, strings.NewReader(exported(t, im, true)), false)
	require.NoError(t, err)

	require.NoError(t, repair.SaveImage(storetest.Background, again, filepath.Join(dir, "b.save")))
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	after, err := os.ReadFile(filepath.Join(dir, "b.save"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "a save that was exported and imported has the same bytes")

	store := filepath.Join(dir, "store")
	require.NoError(t, repair.SaveStore(storetest.Background, again, store))
	storetest.Verified(t, store)
	u := storetest.New(0)
	s := storetest.Open(t, store, u, persist.Options{})
	require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(u.World))
	require.Equal(t, w.Heat.Values(), u.Heat.Values())
	u.Fill(2)
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	storetest.Verified(t, store)
	for _, name := range []string{"a.save", "b.save", "store"} {
		require.ErrorIs(t, repair.SaveImage(storetest.Background, again, filepath.Join(dir, name)), os.ErrExist)
		require.ErrorIs(t, repair.SaveStore(storetest.Background, again, filepath.Join(dir, name)), os.ErrExist)
	}
}

// smallExport returns an export with a row of every kind of component, one value per line.
func smallExport(t testing.TB) string {
	w := ecs.NewWorld(ecs.Options{})
	health := ecs.MustRegister(w, ecs.Component[float64]{Name: "Health"})
	armors := ecs.MustRegister(w, ecs.Component[storetest.Armor]{Name: "Armor", Kind: ecs.Indexed, Default: storetest.Armor{Points: 5}})
	ecs.Must(ecs.RegisterResource(w, int64(7), ecs.Component[int64]{Name: "score"}))
	for i := range 3 {
		health.Set(w.Create(), math.Inf(i%2-1))
	}
	armors.Set(w.Entities()[2], storetest.Armor{Points: 9})
	w.Destroy(w.Entities()[1])
	return exported(t, inspect.NewImage(storetest.ImageOf(t, &storetest.World{World: w})), true)
}

func TestExport_TextFormat(t *testing.T) {
	want := `{"format":"ecsdump.export/1","tick":0,"digest":"DIGEST"}
{"name":"Health","kind":"component","rewinds":true,"layout":{"kind":"float64"}}
{"name":"Armor","kind":"component","rewinds":true,"indexed":true,"default":{"Points":5},"layout":{"kind":"struct","name":"armor","fields":[{"name":"Points","type":{"kind":"int16"}}]}}
{"name":"score","kind":"resource","rewinds":true,"layout":{"kind":"int64"}}
{"entity":"0v1","status":"alive"}
{"entity":"2v1","status":"alive"}
{"entity":"1v1","status":"free"}
{"component":"Health","entity":"0v1","value":"-Inf"}
{"component":"Health","entity":"2v1","value":"-Inf"}
{"component":"Armor","gap":true}
{"component":"Armor","gap":true}
{"component":"Armor","entity":"2v1","value":{"Points":9}}
{"component":"score","value":7}
`
	got := smallExport(t)
	digest := got[strings.Index(got, `digest":"`)+9:][:16]
	require.Equal(t, strings.Replace(want, "DIGEST", digest, 1), got)
}

func TestImport_Errors(t *testing.T) {
	good := smallExport(t)
	_, err := repair.Import(storetest.Background, strings.NewReader(good), false)
	require.NoError(t, err)
	for _, test := range []struct{ old, replacement, want string }{
		{`"tick":0`, `"tick":-1`, "line 1: tick"},
		{`"tick":0`, `"tock":0`, `line 1: no member "tock"`},
		{`"format":"ecsdump.export/1",`, ``, "line 1: the export does not begin with the format"},
		{`export/1`, `ls/1`, "line 1: the export does not begin with the format"},
		{`"digest":"`, `"digest":"f`, "the state has digest"},
		{`"tick":0`, `"tick":1`, "the state has digest"},
		{`"value":7`, `"value":8`, "the state has digest"},
		{`{"name":"Health"`, `{"name":""`, "line 2: component"},
		{`{"name":"Armor"`, `{"name":"Health"`, `line 3: component "Health": the name is empty, too long or used twice`},
		{`"kind":"resource"`, `"kind":"thing"`, `line 4: component "score": kind "thing"`},
		{`"rewinds":true,`, ``, `line 2: component "Health": rewinds or layout is missing`},
		{`{"kind":"float64"}`, `{"kind":"slice"}`, `line 2: component "Health": layout: invalid data`},
		{`{"Points":5}`, `{"Points":"x"}`, `line 3: component "Armor": default: layout: invalid data: armor.Points: want int16`},
		{`"indexed":true,`, ``, `line 3: component "Armor": a default without gaps`},
		{`{"entity":"2v1","status":"alive"}`, `{"entity":"2","status":"alive"}`, "line 6: "},
		{`{"entity":"2v1","status":"alive"}`, `{"entity":"2v1","status":"dead"}`, `line 6: 2v1: status "dead"`},
		{`{"entity":"0v1","status":"alive"}`, `{"entity":"0v1","status":"free"}`, "line 6: 2v1: alive entities must come first"},
		{`{"entity":"1v1","status":"free"}`, `{"entity":"3v1","status":"free"}`, "line 8: 3v1: the 3 entities"},
		{`{"entity":"1v1","status":"free"}`, `{"entity":"0v2","status":"free"}`, "line 8: 0v2: the 3 entities"},
		{`{"component":"Health","entity":"2v1","value":"-Inf"}`, `{"component":"Heath","entity":"2v1","value":"-Inf"}`, `line 9: 2v1 of "Heath": there is no such component`},
		{`{"component":"Health","entity":"2v1","value":"-Inf"}`, `{"component":"Health","entity":"0v1","value":"-Inf"}`, `line 9: 0v1 of "Health": the entity has two rows`},
		{`{"component":"Health","entity":"2v1","value":"-Inf"}`, `{"component":"Health","entity":"2v1"}`, `line 9: 2v1 of "Health": the value is missing`},
		{`{"component":"Health","entity":"2v1","value":"-Inf"}`, `{"component":"Health","entity":"9v1","value":"-Inf"}`, `line 9: 9v1 of "Health"`},
		{`{"component":"Health","entity":"2v1","value":"-Inf"}`, `{"component":"Health","gap":true}`, `line 9: row of "Health": a row has an entity`},
		{`{"component":"Health","entity":"2v1","value":"-Inf"}`, `{"component":"Health","entity":"2v7","value":"-Inf"}`, "ecs: bad state"},
		{`{"component":"Health","entity":"2v1","value":"-Inf"}`, `{"component":"Health","entity":"2v1","value":"Inf"}`, `line 9: 2v1 of "Health": layout: invalid data: want float64`},
		{`{"component":"Armor","gap":true}`, `{"component":"Armor","entity":"1v1","value":{"Points":1}}`, `line 10: 1v1 of "Armor": row 0 belongs to 1v1`},
		{`{"component":"score","value":7}`, `{"component":"score","value":7,"entity":"0v1"}`, `line 13: 0v1 of "score": a resource`},
		{`{"component":"score","value":7}`, `{"component":"score","value":7}{"component":"score","value":7}`, `line 13: row of "score": a resource has one value`},
		{`{"component":"score","value":7}`, `{"entity":"0v1","status":"free"}`, "line 13: entities must come before rows"},
		{`{"component":"score","value":7}`, `{"component":"score","value":7,"row":1}`, `line 13: unknown field "row"`},
		{`{"component":"score","value":7}`, `{"component":"score","value":`, "line 13: unexpected EOF"},
		{`{"component":"score","value":7}`, `[]`, "line 13: "},
		{good, ``, "line 1: unexpected EOF"},
		{good, `[]`, "line 1: expected a JSON object"},
		{good, `{}`, "line 1: the export does not begin with the format"},
		{good, `{"components":[]}`, "the export does not begin with the format"},
		{good, `{"format":"ecsdump.export/1","rows":[],"entities":[]}`, "entities must come before rows"},
		{good, `{"format":"ecsdump.export/1","components":[{"component":"A"}]}`, "an element of rows is in the list of components"},
		{good, `{"format":"ecsdump.export/1","components":[]}{}`, "the export is followed by more text"},
	} {
		src := strings.Replace(good, test.old, test.replacement, 1)
		require.NotEqual(t, good, src, test.old)
		_, err := repair.Import(storetest.Background, strings.NewReader(src), false)
		require.ErrorIs(t, err, repair.ErrImport, src)
		require.ErrorContains(t, err, test.want, src)
	}
	_, err = repair.Import(storetest.Background, strings.NewReader(strings.Replace(good, "export/1", "export/2", 1)), false)
	require.ErrorIs(t, err, persist.ErrNewer)
	require.NotErrorIs(t, err, repair.ErrImport)
	_, err = repair.Import(storetest.Background, iotest.ErrReader(os.ErrPermission), false)
	require.ErrorIs(t, err, os.ErrPermission)
	require.NotErrorIs(t, err, repair.ErrImport)

	im, err := repair.Import(storetest.Background, strings.NewReader(strings.Replace(good, `"value":7`, `"value":8`, 1)), true)
	require.NoError(t, err)
	score, err := im.Find("score").Value(0)
	require.NoError(t, err)
	require.Equal(t, int64(8), score.Int())
}

func TestExport_WriteError(t *testing.T) {
	w := storetest.New(0)
	w.Fill(100)
	require.Error(t, repair.Export(storetest.Background, inspect.NewImage(storetest.ImageOf(t, w)), failingWriter{}, true))
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

func FuzzImport(f *testing.F) {
	small := smallExport(f)
	f.Add(small, true)
	w := storetest.HostileBase(f)
	f.Add(exported(f, inspect.NewImage(storetest.ImageOf(f, w)), false), false)
	f.Add(`{"format":"ecsdump.export/1","components":[{"name":"A","kind":"component","rewinds":true,"indexed":true,"layout":{"kind":"array","len":999999999,"elem":{"kind":"bool"}}}],"entities":[{"entity":"0v1","status":"alive"}],"rows":[{"component":"A","gap":true}]}`, true)
	f.Fuzz(func(t *testing.T, src string, edited bool) {
		storetest.Bounded(t, len(src), func() {
			im, err := repair.Import(storetest.Background, strings.NewReader(src), edited)
			if err != nil {
				require.True(t, errors.Is(err, repair.ErrImport) || errors.Is(err, persist.ErrNewer), "%v", err)
				return
			}
			again, err := repair.Import(storetest.Background, strings.NewReader(exported(t, im, true)), false)
			require.NoError(t, err)
			require.Equal(t, im.Digest(), again.Digest())
		})
	})
}
