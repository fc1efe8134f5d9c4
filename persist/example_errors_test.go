package persist_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// The guide shows these programs, which cause the most frequent errors.

// printError prints an error in lines of at most 90 letters.
func printError(err error) {
	line := ""
	for word := range strings.FieldsSeq(err.Error()) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > 90 {
			fmt.Println(line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	fmt.Println(line)
}

func ExampleErrUncommitted() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	world, turn := newGame()
	store, _ := persist.Open(ctx, temp, world, persist.Options{})
	_ = store.Commit()
	turn()
	printError(store.Goto(ctx, "@first")) // It would lose what turn changed.
	_ = store.Commit()
	fmt.Println(store.Goto(ctx, "@first"))
	_ = store.Close(ctx)
	// Output:
	// persist: uncommitted changes of entities, Score: going to another state needs a tick that
	// has ended; call it after Commit, and not in a system
	// <nil>
}

func ExampleErrLocked() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	world, _ := newGame()
	store, _ := persist.Open(ctx, filepath.Join(temp, "game"), world, persist.Options{})
	other, _ := newGame()
	_, err := persist.Open(ctx, filepath.Join(temp, "game"), other, persist.Options{})
	fmt.Println(errors.Is(err, persist.ErrLocked)) // The text names the process.
	_ = store.Close(ctx)
	// Output:
	// true
}

func ExampleErrNotEmpty() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	for range 2 {
		world, turn := newGame()
		turn() // Create the first entities after Open, if the tick is 0.
		store, err := persist.Open(ctx, temp, world, persist.Options{})
		if err != nil {
			printError(err)
			return
		}
		_ = store.Commit()
		_ = store.Close(ctx)
	}
	// Output:
	// persist: both world and directory hold a state: the world has 1 entities; open with an
	// empty world, then call Store.Load to continue from a save; or open a new directory
}

func ExampleErrSchema() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	save := filepath.Join(temp, "game.save")
	type old struct{ Health, Armor int }
	before := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister(before, ecs.Component[old]{Name: "Body"}).Set(before.Create(), old{3, 5})
	_ = persist.Save(ctx, save, before)

	type body struct{ Health int }
	after := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister(after, ecs.Component[body]{Name: "Body"})
	printError(persist.Load(ctx, save, after))
	// Output:
	// persist: schema does not fit: ecs: stored values would be lost: component Body:
	// body.Armor: dropped, was int64; to drop: ecs.Component[body]{Name: "Body", Dropped:
	// []string{"Armor"}}; to convert: ecs.Component[body]{Name: "Body", Version: 1, Migrations:
	// []ecs.Migration{ecs.Migrate(0, func(v oldBody) body { … })}}
}

func ExampleErrNotFound() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	world, turn := newGame()
	store, _ := persist.Open(ctx, temp, world, persist.Options{})
	turn()
	_ = store.Mark("before the boss")
	_ = store.Commit()
	fmt.Println(store.Goto(ctx, "mark:before the bos"))
	fmt.Println(store.Goto(ctx, "7"))
	_ = store.Close(ctx)
	// Output:
	// persist: not found: mark "before the bos"; did you mean "before the boss"?
	// persist: not found: tick 7; the path to the newest state ends with tick 1
}

func ExampleErrCorrupt() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	save := filepath.Join(temp, "game.save")
	world, turn := newGame()
	turn()
	_ = persist.Save(ctx, save, world)
	bytes, _ := os.ReadFile(save)
	bytes[len(bytes)/2] ^= 1
	_ = os.WriteFile(save, bytes, 0o600)
	other, _ := newGame()
	err := persist.Load(ctx, save, other)
	if damage := new(persist.DamageError); errors.As(err, &damage) {
		fmt.Println(damage.File, "from byte", damage.Offset, "on:", damage.Reason)
	}
	fmt.Println("entities:", other.Len())
	// Output:
	// game.save from byte 0 on: checksum differs
	// entities: 0
}
