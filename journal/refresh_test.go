package journal_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// A shownFS is a copy of a journal's files that does not change during a read. It counts the bytes
// that are read.
type shownFS struct {
	*disktest.Mem
	opened, bytes int
}

func (s *shownFS) Open(name string) (disk.File, error) {
	f, err := s.Mem.Open(name)
	s.opened++
	return countedFile{f, s}, err
}

type countedFile struct {
	disk.File
	fs *shownFS
}

func (f countedFile) ReadAt(b []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(b, offset)
	f.fs.bytes += n
	return n, err
}

// show makes s show a copy of fs.
func (s *shownFS) show(fs *disktest.Mem) { s.Mem, s.opened, s.bytes = fs.Clone(), 0, 0 }

// refresh refreshes log and compares the result with a new scan.
func refresh(t *testing.T, log *journal.Log, shown *shownFS) (changed bool) {
	t.Helper()
	before := log.Everything()
	changed, err := log.Refresh(ctx)
	if err != nil {
		t.Fatalf("Refresh of %v = %v", shown, err)
	}
	if !changed && !reflect.DeepEqual(log.Everything(), before) {
		t.Fatalf("Refresh of %v = false, but the log has changed", shown)
	}
	fresh, err := journal.Scan(ctx, shown, 0, nil)
	if err != nil {
		t.Fatalf("Scan(%v) = %v", shown, err)
	}
	got, want := reflect.ValueOf(log.Everything()).Elem(), reflect.ValueOf(fresh.Everything()).Elem()
	for i := range got.NumField() {
		if f := got.Type().Field(i); f.IsExported() && !reflect.DeepEqual(got.Field(i).Interface(), want.Field(i).Interface()) {
			t.Fatalf("Refresh of %v gives %s\n%+v, want\n%+v", shown, f.Name, got.Field(i), want.Field(i))
		}
	}
	if !reflect.DeepEqual(log.Everything(), fresh.Everything()) {
		t.Fatalf("Refresh of %v gives other gaps", shown)
	}
	return changed
}

// A refreshModel writes a journal at random, while a log of the journal is refreshed.
type refreshModel struct {
	*testing.T
	*rand.Rand
	files   *disktest.Mem
	journal *journal.Journal
	shown   *shownFS
	log     *journal.Log
	seqs    []uint64 // Seqs that may be parents.
}

func (m *refreshModel) open() {
	options := sampleOptions
	options.SegmentSize = 300 + int64(m.IntN(3000))
	m.journal = open(m.T, m.files, options)
	if log := scan(m.T, m.files); len(log.Entries) == 0 {
		m.seqs = []uint64{0}
	}
}

// close ends the program, cleanly or not, and opens the journal again.
func (m *refreshModel) close() {
	switch m.IntN(3) {
	case 0:
		closeJournal(m.T, m.journal, m.parent())
	case 1:
		m.journal.Abandon()
	default: // After a power cut, a reader starts with a new log.
		m.journal.Abandon()
		m.files = m.files.CrashSeed(m.Uint64())
		m.shown.show(m.files)
		m.log = scan(m.T, m.shown)
	}
	m.look()
	log := scan(m.T, m.files)
	m.seqs = []uint64{0}
	for _, e := range log.Entries {
		m.seqs = append(m.seqs, e.ID.Seq)
	}
	m.open()
}

// parent returns a record to continue, in most cases the newest one.
func (m *refreshModel) parent() uint64 {
	if m.IntN(4) > 0 {
		return m.seqs[len(m.seqs)-1]
	}
	return m.seqs[m.IntN(len(m.seqs))]
}

// write performs one random operation.
func (m *refreshModel) write() {
	var err error
	switch n := m.IntN(100); {
	case n < 70:
		id := add(m.T, m.journal, m.parent(), m.IntN(250))
		m.seqs = append(m.seqs, id.Seq)
	case n < 78:
		err = m.journal.AppendPreamble([]byte("another schema"))
	case n < 88:
		err = m.journal.Sync(ctx)
	case n < 91:
		err = m.journal.Roll(ctx)
	case n < 95:
		keep := m.seqs[m.IntN(len(m.seqs))]
		_, err = m.journal.Prune(keep)
	case n < 98:
		m.close()
	}
	if err != nil {
		m.Fatal(err)
	}
}

// look refreshes the log. The newest bytes may be visible in part, as zeros or as garbage.
func (m *refreshModel) look() {
	known := map[string]int64{}
	for _, s := range m.log.Segments {
		known[s.Name] = s.Size
	}
	m.shown.show(m.files)
	files := m.shown.Files()
	if len(files) > 0 && m.IntN(3) == 0 {
		last := files[len(files)-1]
		data, from := m.shown.Bytes(last), max(256, int(known[last]))
		if from < len(data) {
			at := from + m.IntN(len(data)-from)
			switch m.IntN(4) {
			case 0:
				data[at] ^= 1 << m.IntN(8)
			case 1:
				clear(data[at:])
			default:
				data = data[:at]
			}
			m.shown.Put(last, data)
		}
	}
	refresh(m.T, m.log, m.shown)
}

func TestRefresh_EqualsScan(t *testing.T) {
	for seed := range uint64(25) {
		files := disktest.New()
		shown := &shownFS{Mem: files}
		m := &refreshModel{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), files: files, shown: shown, log: scan(t, shown)}
		m.open()
		for range 120 {
			if m.write(); m.IntN(3) == 0 {
				m.look()
			}
		}
		m.journal.Abandon()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestRefresh_ReadsOnlyNewBytes(t *testing.T) {
	files := disktest.New()
	j := open(t, files, journal.Options{SegmentSize: 100_000})
	for seq := range uint64(300) {
		add(t, j, seq, 1000)
	}
	durable(t, j)
	shown := &shownFS{}
	shown.show(files)
	log := scan(t, shown)
	if len(log.Segments) < 3 {
		t.Fatalf("%d segments", len(log.Segments))
	}

	// An idle journal writes a mark after its sync.
	for at := time.Now(); ; time.Sleep(time.Millisecond) {
		shown.show(files)
		changed, err := log.Refresh(ctx)
		if !changed && err == nil && shown.opened == 0 {
			break
		}
		if err != nil || time.Since(at) > 10*time.Second {
			t.Fatalf("Refresh = %v, %v, opened %d files, want false, nil, 0", changed, err, shown.opened)
		}
	}
	add(t, j, 300, 1000)
	durable(t, j)
	shown.show(files)
	if changed, err := log.Refresh(ctx); !changed || err != nil || shown.bytes > 2000 || log.Head != 301 {
		t.Errorf("Refresh = %v, %v, read %d bytes, head %d", changed, err, shown.bytes, log.Head)
	}
	if _, err := j.Prune(250); err != nil {
		t.Fatal(err)
	}
	shown.show(files)
	if changed, err := log.Refresh(ctx); !changed || err != nil || shown.bytes > 2000 {
		t.Errorf("Refresh after Prune = %v, %v, read %d bytes", changed, err, shown.bytes)
	}
	check(t, log)
	refresh(t, log, shown)
	if err := j.Roll(ctx); err != nil {
		t.Fatal(err)
	}
	add(t, j, 301, 1000)
	durable(t, j)
	shown.show(files)
	if changed, err := log.Refresh(ctx); !changed || err != nil || shown.bytes > 3000 || log.Head != 302 {
		t.Errorf("Refresh after Roll = %v, %v, read %d bytes, head %d", changed, err, shown.bytes, log.Head)
	}
	closeJournal(t, j, 302)
}

func durable(t *testing.T, j *journal.Journal) {
	t.Helper()
	if err := j.Sync(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestRefresh_JournalReplaced(t *testing.T) {
	old := sample(t)
	shown := &shownFS{}
	shown.show(old)
	log := scan(t, shown)
	other := disktest.New()
	options := sampleOptions
	options.World = [16]byte{9}
	j := open(t, other, options)
	for seq := range uint64(50) {
		add(t, j, seq, 100)
	}
	closeJournal(t, j, 50)
	shown.show(other)
	if !refresh(t, log, shown) || log.World != options.World {
		t.Errorf("the log is still of world %x", log.World)
	}
	shown.show(disktest.New())
	refresh(t, log, shown)
	if len(log.Segments) != 0 {
		t.Errorf("%d segments of an empty directory", len(log.Segments))
	}
}

func TestRefresh_FailureKeepsOldLog(t *testing.T) {
	files := disktest.New()
	j := open(t, files, sampleOptions)
	for seq := range uint64(9) {
		add(t, j, seq, 100)
	}
	shown := &shownFS{}
	durable(t, j)
	shown.show(files)
	log := scan(t, shown)
	before := log.Everything()
	for seq := range uint64(9) {
		add(t, j, 9+seq, 100)
	}
	durable(t, j)
	broken := errors.New("broken")
	for n := 1; ; n++ {
		shown.show(files)
		shown.Fail(n+shown.Calls(), broken)
		_, err := log.Refresh(ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, broken) || !reflect.DeepEqual(log.Everything(), before) {
			t.Fatalf("call %d fails: Refresh = %v, the log is\n%+v, want\n%+v", n, err, log.Everything(), before)
		}
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := log.Refresh(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("Refresh(canceled) = %v", err)
	}
	refresh(t, log, shown)
	closeJournal(t, j, 18)
}

// A pruningFS calls prune() before it opens a file. The test prunes the journal there, in the
// middle of a refresh.
type pruningFS struct {
	*disktest.Mem
	prune func(name string)
}

func (p *pruningFS) Open(name string) (disk.File, error) {
	p.prune(name)
	return p.Mem.Open(name)
}

func TestRefresh_SegmentsVanishMeanwhile(t *testing.T) {
	files := disktest.New()
	j := open(t, files, journal.Options{})
	add(t, j, 0, 10)
	durable(t, j)
	reading := &pruningFS{Mem: files, prune: func(string) {}}
	log, err := journal.Scan(ctx, reading, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	add(t, j, 1, 10)
	if err := j.Roll(ctx); err != nil {
		t.Fatal(err)
	}
	durable(t, j)
	reading.prune = func(name string) {
		if strings.HasPrefix(name, "00000001") {
			if _, err := j.Prune(3); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
	}
	if _, err := log.Refresh(ctx); err != nil || len(log.Segments) != 1 || log.Head != 2 {
		t.Errorf("Refresh = %v, %d segments, head %d", err, len(log.Segments), log.Head)
	}
	closeJournal(t, j, 2)
}
