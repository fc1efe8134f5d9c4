package snap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// A Reader reads a snapshot file and the files that it refers to. Several goroutines may read pages
// at the same time.
//
// A page is looked up in at most two places:
//
//	own    in the file, under its key: its content, a reference, or nothing
//	find   follows a reference to the file that it names, to a page with content
//
// Another file is opened when it is first needed. The manifest lists its number and the checksum of
// the file, so a different file with the same name is detected. A reference has the checksum of the
// content, which must match.
type Reader struct {
	Name     string
	File     *pagefile.File
	Manifest *format.Manifest

	files  disk.FS
	nameOf func(number uint32) string

	mu     sync.Mutex // Guards the field others.
	others map[uint32]otherFile
}

// An otherFile is a file that a snapshot refers to, or the error of opening it.
type otherFile struct {
	*pagefile.File
	err error
}

// Open opens a snapshot file and reads its manifest. nameOf returns the names of the files that it
// refers to.
func Open(files disk.FS, name string, nameOf func(uint32) string) (*Reader, error) {
	f, err := pagefile.Open(files, name)
	if err != nil {
		return nil, err
	}
	r := &Reader{Name: name, File: f, files: files, nameOf: nameOf, others: map[uint32]otherFile{}}
	// An empty manifest does not allow the page of the manifest to be compressed or repeated.
	r.Manifest = new(format.Manifest)
	content, ref, err := r.own(format.Key(format.ManifestColumn, 0), nil)
	switch {
	case err != nil:
	case ref.Elsewhere():
		err = corrupt(name, "its manifest is a reference")
	case content == nil:
		err = fmt.Errorf("%w: no manifest", format.ErrForeign)
	default:
		r.Manifest, err = format.DecodeManifest(content)
	}
	if err != nil {
		r.Close()
		return nil, r.Damage(err)
	}
	return r, nil
}

// Close closes the file and the files that it refers to.
func (r *Reader) Close() {
	r.File.Close()
	for _, f := range r.others {
		if f.err == nil {
			f.Close()
		}
	}
}

// corrupt returns a damage error that names a file but no position.
func corrupt(name, reason string, args ...any) error {
	return &format.DamageError{File: name, Offset: -1, Length: 0, Reason: fmt.Sprintf(reason, args...), Err: format.ErrCorrupt}
}

// Damage converts err to damage of the file. It returns err unchanged in these cases:
//
//	it has a position            a DamageError, or the PathError of a failed read
//	the context has ended        the file may be intact
//	the file is not damaged      newer than this program, too large for it, or not a snapshot
func (r *Reader) Damage(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	_, placed := errors.AsType[*format.DamageError](err)
	_, named := errors.AsType[*fs.PathError](err)
	if placed || named || errors.Is(err, format.ErrNewer) || errors.Is(err, format.ErrTooLarge) || errors.Is(err, format.ErrForeign) {
		return err
	}
	return corrupt(r.Name, "%s", err.Error())
}

// InComponent adds the name of component n to err.
func (r *Reader) InComponent(n int, err error) error {
	return fmt.Errorf("component %s: %w", naming.Shown(r.Manifest.Schema.Components[n].Name), err)
}

// Page returns the content of a page of a, checked for its length. It returns nil for a page of a
// sparse array without entries.
func (r *Reader) Page(a format.Array, page int) ([]byte, error) { return r.PageInto(nil, a, page) }

// PageInto is [Reader.Page], but may use the memory of buf.
func (r *Reader) PageInto(buf []byte, a format.Array, page int) ([]byte, error) {
	k := a.Key(page)
	content, _, err := r.find(k, buf)
	switch {
	case err != nil:
		return nil, err
	case content == nil && a.Kind != format.SparseArray:
		return nil, missing(k)
	}
	return content, fits(&a, page, content)
}

// Own returns the content of a page, like [Reader.Page], if the file itself contains the page. For
// another page it returns the reference and no content.
func (r *Reader) Own(a format.Array, page int) ([]byte, format.PageRef, error) {
	content, ref, err := r.own(a.Key(page), nil)
	if err == nil && content != nil {
		err = fits(&a, page, content)
	}
	return content, ref, err
}

// missing returns the error for a missing page.
func missing(k pagefile.Key) error { return fmt.Errorf("page %v is missing", k) }

// inPage adds the key of a page to err.
func inPage(k pagefile.Key, err error) error { return fmt.Errorf("page %v: %w", k, err) }

// fits returns an error if the length of content does not match the rows of a page of a. For rows
// of varying width, only decoding finds the error.
func fits(a *format.Array, page int, content []byte) error {
	if lo, hi := a.Span(page); a.Width >= 0 && len(content) != (hi-lo)*a.Width {
		return inPage(a.Key(page), image.ErrRanges)
	}
	return nil
}

// find returns the content of a page and its position. The position always has a file number. The
// content is nil if the page does not exist. find() may use the memory of buf.
func (r *Reader) find(k pagefile.Key, buf []byte) ([]byte, format.PageRef, error) {
	content, ref, err := r.own(k, buf)
	if err != nil || content != nil || !ref.Elsewhere() {
		ref.File = r.Manifest.Number
		return content, ref, err
	}
	f, name, err := r.holder(ref.File)
	if err != nil {
		return nil, ref, err
	}
	there := ref.Of(k)
	content, held, err := readPage(f, name, there, buf)
	// The reference must lead to a page with content: only one reference is followed.
	switch {
	case err != nil || content != nil && held.CRC == ref.CRC:
	case there == k:
		err = corrupt(name, "page %v is not the one that %s refers to", k, r.Name)
	default:
		err = corrupt(name, "page %v is not the one that page %v of %s repeats", there, k, r.Name)
	}
	return content, ref, err
}

// own returns the content of a page if the file has the content under that key. Otherwise it
// returns the reference. If the page does not exist, it returns neither. It may use the memory of
// buf.
func (r *Reader) own(k pagefile.Key, buf []byte) ([]byte, format.PageRef, error) {
	content, ref, err := readPage(r.File, r.Name, k, buf)
	if err == nil {
		err = settle(r.Name, r.Manifest, k, &ref)
	}
	return content, ref, err
}

// settle completes ref, which was read from page k. If the page repeats another page of the same
// file, settle sets the file number. It returns an error if the manifest m does not allow a
// compressed page or a repeat.
func settle(name string, m *format.Manifest, k pagefile.Key, ref *format.PageRef) error {
	if ref.Compressed && !m.Compressed {
		return corrupt(name, "page %v cannot be compressed", k)
	}
	if ref.Column == 0 {
		return nil
	}
	if !format.MayRepeat(k.Column, ref.Column) || !m.Repeats {
		return corrupt(name, "page %v cannot repeat one of column %d", k, ref.Column)
	}
	if ref.File == 0 {
		ref.File = m.Number
	}
	return nil
}

// holder returns the file with the number that a page reference contains, and the name of the file.
func (r *Reader) holder(number uint32) (f *pagefile.File, name string, err error) {
	if number == r.Manifest.Number {
		return r.File, r.Name, nil
	}
	f, err = r.other(number)
	return f, r.nameOf(number), err
}

// ReadPage returns the content of a page of f, or the reference in the page. If the page does
// not exist, it returns neither.
func ReadPage(f *pagefile.File, name string, k pagefile.Key) ([]byte, format.PageRef, error) {
	return readPage(f, name, k, nil)
}

// readPage is [ReadPage], but may use the memory of buf.
func readPage(f *pagefile.File, name string, k pagefile.Key, buf []byte) ([]byte, format.PageRef, error) {
	value, ok, err := f.GetInto(buf, k)
	if err != nil || !ok {
		return nil, format.PageRef{}, err
	}
	return DecodePage(name, k, value)
}

// DecodePage is like [ReadPage], but decodes a value that was already read.
func DecodePage(name string, k pagefile.Key, value []byte) ([]byte, format.PageRef, error) {
	content, ref, err := format.DecodePage(value)
	if err != nil {
		return nil, ref, corrupt(name, "page %v: %v", k, err)
	}
	return content, ref, nil
}

// other returns a file that r refers to, after checking its identity.
func (r *Reader) other(number uint32) (*pagefile.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.others[number]
	if !ok {
		f.File, f.err = r.openOther(number)
		r.others[number] = f
	}
	return f.File, f.err
}

// openOther opens a file that the manifest lists and compares its checksum. Only listed files are
// opened, so a page cannot make the program open any other file.
func (r *Reader) openOther(number uint32) (*pagefile.File, error) {
	for _, ref := range r.Manifest.Files {
		if ref.Number != number {
			continue
		}
		name := r.nameOf(number)
		f, err := pagefile.Open(r.files, name)
		if errors.Is(err, fs.ErrNotExist) {
			err = corrupt(name, "missing")
		}
		if err != nil {
			return nil, fmt.Errorf("%s refers to %s: %w", r.Name, name, err)
		}
		if f.Info().CRC != ref.CRC {
			f.Close()
			return nil, corrupt(name, "it is not the file that %s refers to", r.Name)
		}
		return f, nil
	}
	return nil, corrupt(r.Name, "it refers to file %d, which its manifest does not list", number)
}

// room returns an upper bound of the bytes of state in the files, so that a wrong manifest cannot
// make the caller allocate more. A page that repeats another page takes only a few bytes in the
// file. So room() counts each small page as a repeat of the maximum size.
func (r *Reader) room() int64 {
	room := r.roomOnce()
	if r.Manifest.Repeats {
		room += format.MaxRepeated * r.File.CountSmall(format.MaxReference)
	}
	return room
}

// roomOnce is like room(), but for arrays without repeated pages, such as the registry. Files that
// cannot be opened count as empty.
func (r *Reader) roomOnce() int64 {
	files := map[*pagefile.File]bool{r.File: true}
	for _, ref := range r.Manifest.Files {
		if f, err := r.other(ref.Number); err == nil {
			files[f] = true
		}
	}
	size := int64(0)
	for f := range files {
		size += f.Info().Size
	}
	return r.Manifest.Room(size)
}

// CheckRegistry returns an error if the sizes of the registry contradict each other, or if the
// files have no room for them.
func (r *Reader) CheckRegistry() error {
	if err := r.Manifest.CheckRegistry(); err != nil {
		return err
	}
	if a := r.Manifest.Registry(); int64(a.Rows) > r.roomOnce()/int64(a.Width) {
		return fmt.Errorf("%d indices in files that have no room for them", a.Rows)
	}
	return nil
}

// Plausible reports whether the files have room for the rows that the manifest claims. Then
// allocating all of them is safe.
func (r *Reader) Plausible() bool { return plausible(r.Manifest, r.room()) }
