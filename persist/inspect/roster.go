package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// errNoSnapshot reports a state that is in no snapshot, but behind one: it has to be
// replayed.
var errNoSnapshot = errors.New("persist: no snapshot holds the state")

// roster is [View.Roster] of the state in a snapshot.
func roster(ctx context.Context, v *catalog.Catalog, s SnapshotInfo, skip, n int) (tick uint64, alive int, entities []ecs.Entity, err error) {
	r, err := snap.Open(v.Files, s.Name, catalog.SnapshotName)
	if err != nil {
		return 0, 0, nil, err
	}
	defer r.Close()
	l := lowest{keep: skip + n}
	err = r.Entities(r.Manifest.Registry(), r.Manifest.Alive, func(row int, e ecs.Entity) bool {
		l.add(e)
		return row%format.PageRows > 0 || ctx.Err() == nil
	})
	if ctx.Err() != nil {
		return 0, 0, nil, ctx.Err()
	}
	if err != nil {
		return 0, 0, nil, r.Damage(fmt.Errorf("entities: %w", err))
	}
	l.cut()
	return r.Manifest.Tick, r.Manifest.Alive, l.entities[min(skip, len(l.entities)):], nil
}

// A lowest keeps the entities of lowest index among those that it is given: O(keep) memory,
// however many come. It gathers twice as many as it keeps before it sorts them, so that each
// entity given costs O(log keep) on average; one that is above all that are kept costs nothing.
type lowest struct {
	keep     int
	entities []ecs.Entity // At most twice keep.
	above    uint64       // Indices from here on are of no use; 0: not known.
}

func (l *lowest) add(e ecs.Entity) {
	if l.above > 0 && uint64(e.Index()) >= l.above {
		return
	}
	if l.entities = append(l.entities, e); len(l.entities) >= 2*l.keep {
		l.cut()
	}
}

// cut drops what is not among the lowest, and sorts the others.
func (l *lowest) cut() {
	slices.SortFunc(l.entities, func(a, b ecs.Entity) int { return cmp.Compare(a.Index(), b.Index()) })
	if len(l.entities) < l.keep {
		return
	}
	l.entities = l.entities[:l.keep]
	l.above = math.MaxUint64
	if l.keep > 0 {
		l.above = uint64(l.entities[l.keep-1].Index())
	}
}
