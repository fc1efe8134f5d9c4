package repair_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/repair"
)

// Export writes a state as text, for other programs and editors. Import reads the text back. It
// accepts changed text only if the caller says that the text was edited.
func ExampleExport() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	recordGame(ctx, filepath.Join(dir, "game"))
	view, err := inspect.OpenReadOnly(ctx, filepath.Join(dir, "game"))
	check(err)
	defer view.Close()
	im, err := view.At(ctx, view.Head())
	check(err)
	var text bytes.Buffer
	check(repair.Export(ctx, im, &text, true))
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	fmt.Println("last line:", lines[len(lines)-1])

	same, err := repair.Import(ctx, strings.NewReader(text.String()), false)
	check(err)
	fmt.Println("same state:", same.Digest() == im.Digest())

	rich := strings.Replace(text.String(), `"value":100`, `"value":1000`, 1)
	_, err = repair.Import(ctx, strings.NewReader(rich), false)
	fmt.Println("refused:", errors.Is(err, repair.ErrDigest))
	edited, err := repair.Import(ctx, strings.NewReader(rich), true)
	check(err)
	gold, err := edited.Find("Gold").Value(0)
	check(err)
	fmt.Println("gold:", gold)
	// Output:
	// last line: {"component":"Gold","value":100}
	// same state: true
	// refused: true
	// gold: 1000
}
