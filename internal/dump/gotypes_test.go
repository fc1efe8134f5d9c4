package dump

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// justEntity is an importer that knows only the type Entity of package ecs.
type justEntity struct{}

func (justEntity) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, "ecs")
	name := types.NewTypeName(token.NoPos, p, "Entity", nil)
	types.NewNamed(name, types.Typ[types.Uint64], nil)
	p.Scope().Insert(name)
	p.MarkComplete()
	return p, nil
}

// compileTypes compiles the output of schema --go and returns its package.
func compileTypes(t *testing.T, source string) *types.Package {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "types.go", source, 0)
	require.NoError(t, err, source)
	config := types.Config{Importer: justEntity{}}
	p, err := config.Check("types", files, []*ast.File{f}, nil)
	require.NoError(t, err, source)
	return p
}

func TestGoTypes_OutputCompiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildStore(dir))
	code, stdout, stderr := ecsdump("schema", dir, "--go")
	require.Equal(t, exitOK, code, stderr)
	p := compileTypes(t, stdout)
	for name, want := range map[string]string{
		"Position": "struct{X float64; Y float64}",
		"Label":    "struct{Text string; Tags []string}",
		"Frozen":   "struct{}",
		"Target":   "struct{Of github.com/stet-ecs/stet/ecs.Entity; Info struct{Range int32}}",
		"Health":   "int32",
		"Score":    "int64",
	} {
		require.NotNil(t, p.Scope().Lookup(name), stdout)
		assert.Equal(t, want, p.Scope().Lookup(name).Type().Underlying().String(), name)
	}
}

func TestGoTypes_InvalidGoNames(t *testing.T) {
	type odd struct {
		A  int64 `stet:"type"`
		B  int32 `stet:"Xtype"`
		C  int16 `stet:"hit_points"`
		D  int8  `stet:"_1st"`
		E  uint8 `stet:"世界"`
		F  map[string][]ecs.Entity
		G  *[3]complex64
		H  []byte
		x  bool
		XX struct{ Deep [2]struct{ Er float32 } }
	}
	file := filepath.Join(t.TempDir(), "odd.save")
	w := ecs.NewWorld(ecs.Options{})
	clone := func(o odd) odd { return o }
	for _, name := range []string{"game.Odd", "game/Odd", "ecs", "func", "9", "Game_Odd", "Ünder"} {
		ecs.MustRegister(w, ecs.Component[odd]{Name: name, Clone: clone}).Set(w.Create(), odd{x: true})
	}
	require.NoError(t, persist.Save(context.Background(), file, w))
	code, stdout, stderr := ecsdump("schema", file, "--go")
	require.Equal(t, exitOK, code, stderr)
	p := compileTypes(t, stdout)
	require.Len(t, p.Scope().Names(), 7)
	s := p.Scope().Lookup("Xgame_Odd").Type().Underlying().(*types.Struct)
	require.Equal(t, 10, s.NumFields())
	assert.Equal(t, "Xtype2", s.Field(0).Name(), "Xtype is the name of another field")
	assert.Equal(t, `stet:"type"`, s.Tag(0))
	assert.Equal(t, "hit_points", s.Field(2).Name())
	assert.Empty(t, s.Tag(2))
	assert.Equal(t, "x", s.Field(8).Name())
}

func TestSchema_GoAndJSONFlagsFail(t *testing.T) {
	code, _, stderr := ecsdump("schema", "D", "--go", "--json")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "give either --go or --json")
}
