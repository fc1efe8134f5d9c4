package snap

import (
	"context"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A pageList is the contents of a new snapshot file: its manifest, and its pages ordered by key.
// While a batch of pages is written, several goroutines encode the next batch.
//
// The manifest is the first page of the file, and says whether any page repeats another page. So
// add() looks for repeated pages before any page is encoded. The position of a page is known once
// it is encoded.
type pageList struct {
	Manifest format.Manifest
	pages    []page
	// Maps a content to the first page with it, as an index in the field pages. It has only pages
	// that may be repeated.
	first map[pageContent]int
	// compress is format.CompressedHead if pages are to be compressed, else nil.
	compress func(head *format.Encoder, buf *[]byte, content []byte) (rest []byte, crc uint32)
}

// A page is a page of a new file. The first of these fields that is set has its content:
//
//	content    the bytes
//	append     a function that appends the bytes
//	repeats    another page of this file
//	tablePage  a page in another file
type page struct {
	key     pagefile.Key
	content []byte
	// append produces the content. If it appends nothing, the page is absent.
	append  func(dst []byte) []byte
	repeats *int // Index of the page with the same content.
	absent  bool // append produced no bytes.
	tablePage
}

// A pageContent is a map key that is the same for equal pages. Pages are equal if they have the
// same page number, the same kind of array and the same checksum. The registry counts as a dense
// array.
type pageContent struct {
	page   uint32
	sparse bool
	sum    xxh3.Uint128
}

// shared reports whether p is stored in another file.
func (p *page) shared() bool { return p.content == nil && p.append == nil && p.repeats == nil }

// add adds page p of an array of this kind. The content of p has size bytes. If an earlier page has
// the same number and checksum, p becomes a repeat.
func (l *pageList) add(kind, size int, p page) {
	if format.Repeatable(kind, size) {
		c := pageContent{p.key.Page, kind == format.SparseArray, p.sum}
		if l.first == nil {
			l.first = map[pageContent]int{}
		}
		if at, ok := l.first[c]; !ok {
			l.first[c] = len(l.pages)
		} else if !p.shared() {
			// A page of another file stays a reference, because a repeat is no smaller.
			p = page{key: p.key, repeats: &at, tablePage: tablePage{sum: p.sum}}
		}
	}
	l.Manifest.Repeats = l.Manifest.Repeats || p.repeats != nil || p.Column != 0
	l.pages = append(l.pages, p)
}

// batchPages is the number of pages in a batch.
const batchPages = 32

// An encodedPage is the value of a page. It is reused for other pages.
type encodedPage struct {
	head    *format.Encoder // Head of the value. Empty if the page is absent.
	content []byte          // The content, or its compressed form.
	buf     []byte          // Buffer of content, if append produced it.
	frame   []byte          // Buffer of the compressed content.
}

// encodedPages keeps encoded pages for reuse, because each has buffers as large as a page.
var encodedPages = sync.Pool{New: func() any { return &encodedPage{head: format.NewEncoder()} }}

// write writes the file. The file gets its name once it is complete, durable and verified. Then the
// position of each page is known.
func (l *pageList) write(ctx context.Context, files disk.FS, name string, o pagefile.Options) (pagefile.Info, error) {
	size := int64(0)
	for i := range l.pages {
		size += int64(l.pages[i].Size)
	}
	p := progress.Start(ctx, progress.PhaseWrite, size)
	info, err := pagefile.CreateWith(files, name, o, func(out *pagefile.Writer) error { return l.put(ctx, out, p) })
	if err == nil {
		p.Finish()
	}
	return info, err
}

// put writes all pages to a file, ordered by key. While it writes a batch, encode() encodes the
// next one in another goroutine. If put fails, it stops that goroutine and waits for its end.
func (l *pageList) put(ctx context.Context, out *pagefile.Writer, p *progress.Meter) error {
	e := format.NewEncoder()
	manifest := l.Manifest.Encode()
	format.PageHead(e, manifest)
	if err := out.Put(format.Key(format.ManifestColumn, 0), e.Buf, manifest); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	batches := make(chan []*encodedPage)
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	go func() {
		defer close(done)
		defer close(batches)
		l.encode(ctx, batches)
	}()
	pages := l.pages
	for batch := range batches {
		for i, encoded := range batch {
			p.Add(int64(pages[i].Size))
			if pages[i].repeats != nil {
				l.refer(&pages[i], encoded.head)
			}
			if head := encoded.head.Buf; len(head) > 0 {
				if err := out.Put(pages[i].key, head, encoded.content); err != nil {
					return err
				}
			}
			encodedPages.Put(encoded)
		}
		pages = pages[len(batch):]
	}
	return ctx.Err()
}

// refer writes the value of p to e. p repeats an earlier page. The earlier page has a lower key, so
// it is already encoded and its position is known.
func (l *pageList) refer(p *page, e *format.Encoder) {
	has := &l.pages[*p.repeats]
	if p.absent = has.absent; p.absent {
		// The other page has no entries and is not stored. So p is not stored, either.
		return
	}
	p.PageRef = has.PageRef
	// The content is under the key of the other page, because add() never repeats a page that is
	// itself a repeat.
	p.Column = has.key.Column
	ref := p.PageRef
	if ref.File == l.Manifest.Number {
		// A reference in the file uses 0 for the file itself. The table uses the number of the
		// file.
		ref.File = 0
	}
	format.AppendReference(e, ref)
}

// encode encodes all pages, batch by batch, until ctx ends.
func (l *pageList) encode(ctx context.Context, batches chan<- []*encodedPage) {
	for pages := l.pages; len(pages) > 0; {
		batch := make([]*encodedPage, min(batchPages, len(pages)))
		err := parallel.Do(ctx, len(batch), func(i int) error {
			batch[i] = l.encodePage(&pages[i])
			return nil
		})
		if err != nil {
			return
		}
		pages = pages[len(batch):]
		select {
		case batches <- batch:
		case <-ctx.Done():
			return
		}
	}
}

// encodePage returns the value of p. If p repeats another page, the value is empty: refer() writes
// it once the other page is encoded.
func (l *pageList) encodePage(p *page) *encodedPage {
	e := encodedPages.Get().(*encodedPage)
	e.head.Buf, e.content = e.head.Buf[:0], p.content
	switch {
	case p.repeats != nil:
		return e
	case p.shared():
		format.AppendReference(e.head, p.PageRef)
		return e
	case p.append != nil:
		e.buf = p.append(e.buf[:0])
		// Release append, because it may reference a sparse array.
		e.content, p.append = e.buf, nil
	}
	if p.absent = len(e.content) == 0; !p.absent {
		p.PageRef = format.PageRef{File: l.Manifest.Number, CRC: l.begin(e)}
	}
	return e
}

// begin writes the head of the page e. It compresses the content if compress is set and the content
// shrinks. It returns the checksum of the content.
func (l *pageList) begin(e *encodedPage) (crc uint32) {
	if l.compress == nil {
		return format.PageHead(e.head, e.content)
	}
	e.content, crc = l.compress(e.head, &e.frame, e.content)
	return crc
}
