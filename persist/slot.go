package persist

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stet-ecs/stet/persist/internal/format"
)

// A slot is a snapshot with a name. If several snapshots were saved as "quick", the newest of them
// is the slot "quick". So a new slot replaces an older one when its file is renamed into place, and
// a crash leaves one of the two. The replaced snapshot has no name any more, and
// retention may remove it:
//
//	snapshot 3 "quick"   snapshot 4   snapshot 5 "quick"
//	no name any more                  the slot

// A Slot is a saved state with a name, such as a saved game. See [Store.SaveSlot].
type Slot struct {
	Name  string
	Note  string // Text of the program, such as "level 3, 2 hours".
	Tick  uint64
	Time  time.Time // Commit time of the tick. Zero if no tick was committed before.
	Bytes int64     // Size of the slot's own file; older files may hold more pages of the slot.
}

// SaveSlot saves the present tick of the world under a name, also after a rewind or a load. It
// waits until the slot is durable. A slot is a snapshot as [Store.Snapshot] takes it, but
// [Options.Retain] never removes it. "snap:NAME" is the point in time of the slot, see
// inspect.View.Resolve.
//
// If a slot with that name exists, the new one replaces it. After a crash at any moment, the store
// has either the old slot or the new one. note is any text that the program wants to show with the
// slot.
//
// A name has at most 255 bytes of visible characters and no spaces at its ends. It must not look
// like a number: "slot 1" is a name, "1" and "1e3" are not. A note has at most 4096 bytes.
// Otherwise the error wraps [ErrName]. SaveSlot returns [ErrUncommitted] if the world has
// uncommitted changes; use [Store.BeginSlot] then. If ctx ends first, SaveSlot returns the error of
// ctx, and the slot may still be saved.
func (s *Store) SaveSlot(ctx context.Context, name, note string) (SnapshotResult, error) {
	n := slotName{name, note}
	if err := n.check(); err != nil {
		return SnapshotResult{}, err
	}
	return s.snapshotNow(ctx, n)
}

// BeginSlot requests a slot with this name and note, and does not wait. The slot gets the state of
// the tick that the next [Store.Commit] ends. That Commit begins the snapshot, and later commits
// copy it, as for [Store.BeginSnapshot]. [Options.OnSnapshot] reports the result. If another
// snapshot is under way when the tick ends, Commit waits until the other snapshot is written.
//
// The rules for names and notes are those of [Store.SaveSlot]. Several slots may be begun in one
// tick. If the world goes to another state before the Commit, nothing is saved, as with
// [Store.Mark]. During the copy, the world may also go back to before the slot's tick. Then the
// result is [ErrAbandoned], and the old slot stays. [Store.Close] returns [ErrUncommitted] if no
// Commit followed.
func (s *Store) BeginSlot(name, note string) error {
	n := slotName{name, note}
	if err := n.check(); err != nil {
		return err
	}
	if err := s.usable(); err != nil {
		return err
	}
	s.dropAsked()
	s.asked, s.askedAt = append(s.asked, n), s.present()
	return nil
}

// LoadSlot brings the world to the state of a slot. It is [Store.Goto] to the point "snap:NAME", so
// NoRewind components and resources keep their values, and the ticks after the slot stay in the
// journal. It returns the errors of Goto. One of them is [ErrNotFound], if there is no slot with
// the name. Another one is [ErrUncommitted], if the world has uncommitted changes. The
// history of the world begins again.
func (s *Store) LoadSlot(ctx context.Context, name string) error {
	if err := format.CheckLabel(name); err != nil {
		return err
	}
	return s.Goto(ctx, "snap:"+name)
}

// Slots returns the slots of the store, newest first. Cost: O(snapshots).
func (s *Store) Slots() []Slot {
	if !s.closed {
		s.collectResult()
	}
	var slots []Slot
	for i := range slices.Backward(s.list) {
		if o := &s.list[i]; o.Label != "" {
			slots = append(slots, Slot{o.Label, o.Note, o.Tick, o.Time, o.Size})
		}
	}
	return slots
}

// DeleteSlot removes a slot. The state is then an ordinary snapshot without a name, which retention
// may remove: see [Options.Retain]. When DeleteSlot returns nil, the deletion is durable. A program
// version without DeleteSlot that opens the store later may show the slot again.
//
// The error wraps [ErrNotFound] if there is no slot with that name. If ctx ends while a snapshot is
// under way, DeleteSlot returns the error of ctx, and the slot still exists. After an error of the
// disk it may still exist when the store is opened again.
func (s *Store) DeleteSlot(ctx context.Context, name string) error {
	if err := s.usable(); err != nil {
		return err
	}
	// DeleteSlot and the goroutine of a snapshot write the same note of the journal. So wait for
	// the snapshot.
	if _, err := s.waitSnapshot(ctx); err != nil {
		return err
	}
	at := slices.IndexFunc(s.list, func(o storedSnapshot) bool { return name != "" && o.Label == name })
	if at < 0 {
		return fmt.Errorf("%w: slot %q", ErrNotFound, name)
	}
	if !s.journal.KeepsNotes() {
		return fmt.Errorf("persist: slot %q: the store has a journal of version 1, which cannot say that a slot is deleted; copy the store by ecsdump compact", name)
	}
	s.list[at].Label = ""
	if err := s.journal.KeepNote(new(pruning).promise(s.list)); err != nil {
		s.list[at].Label = name
		return fmt.Errorf("persist: slot %q: %w", name, err)
	}
	return nil
}
