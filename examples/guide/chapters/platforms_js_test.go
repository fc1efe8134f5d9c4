package chapters_test

import (
	"context"
	"errors"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/browser"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// openInBrowser opens the store of a game in a browser.
func openInBrowser(ctx context.Context, world *ecs.World) (*persist.Store, error) {
	files, err := browser.Open(ctx, "my game")
	if errors.Is(err, disk.ErrLocked) {
		return nil, errors.New("the game is open in another tab")
	} else if err != nil {
		return nil, err // For example browser.ErrUnsupported in some private windows.
	}
	go func() { _, _ = browser.Persist(ctx) }() // The browser may ask the player to keep the data.
	return persist.Open(ctx, ".", world, persist.Options{Files: files})
}

// watchInBrowser shows the game of another tab.
func watchInBrowser(ctx context.Context, world *ecs.World) (*persist.Follower, error) {
	files, err := browser.OpenRead(ctx, "my game")
	if err != nil {
		return nil, err
	}
	return persist.Follow(ctx, ".", world, persist.FileOptions{Files: files})
}

var _, _ = openInBrowser, watchInBrowser
