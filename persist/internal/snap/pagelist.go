package snap

import (
	"context"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A pageList is what a snapshot file is made of: its manifest, and its pages in the order
// of their keys. Pages are encoded a batch at a time, by several goroutines, while the
// batch before is written:
//
//	encoding   | batch 0 | batch 1 | batch 2 |
//	writing              | batch 0 | batch 1 | batch 2 |
//	syncing                        | ...              (package pagefile)
//
// Which page repeats which is decided by add, before any is encoded: the manifest, which says
// whether any does, is the first page of the file. Where a page lies is known once it is encoded.
type pageList struct {
	Manifest format.Manifest
	pages    []page
	first    map[pageContent]int // Of the pages that others may repeat: the first of that content.
}

// A page is one of a file that is being made: its content, or what appends it, if only
// then, or a page that it repeats; none of these: it lies where tablePage says.
type page struct {
	key     pagefile.Key
	content []byte
	append  func(dst []byte) []byte // Nothing: there is no such page.
	repeats *int                    // The index of the page that has its content.
	absent  bool                    // Nothing was appended.
	tablePage
}

// A pageContent is what pages have in common of which one repeats the other: a reference gives
// another column but no other number, and the kind of array must be the same. The registry counts
// as a dense array.
type pageContent struct {
	page   uint32
	sparse bool
	sum    xxh3.Uint128
}

// shared reports whether another file has p.
func (p *page) shared() bool { return p.content == nil && p.append == nil && p.repeats == nil }

// add adds a page of an array of that kind, whose content has size bytes. It is not
// written if a page before has the same content: the sum says so.
func (l *pageList) add(kind, size int, p page) {
	if format.Repeatable(kind, size) {
		c := pageContent{p.key.Page, kind == format.SparseArray, p.sum}
		if l.first == nil {
			l.first = map[pageContent]int{}
		}
		if at, ok := l.first[c]; !ok {
			l.first[c] = len(l.pages)
		} else if !p.shared() {
			// A shared page stays a reference: that costs no more, and its file has it anyway.
			p = page{key: p.key, repeats: &at, tablePage: tablePage{sum: p.sum}}
		}
	}
	l.Manifest.Repeats = l.Manifest.Repeats || p.repeats != nil || p.Column != 0
	l.pages = append(l.pages, p)
}

// batchPages is how many pages are encoded before they are handed to the writer.
const batchPages = 32

// An encodedPage is the value of a page. It is used again for others.
type encodedPage struct {
	head    *format.Encoder // Nothing: there is no such page.
	content []byte          // Or what it became when it was compressed.
	buf     []byte          // What content is in, if it was appended.
	frame   []byte          // What it is in, if it was compressed.
}

// encodedPages keeps encoded pages for the next ones: each has buffers as large as a page.
var encodedPages = sync.Pool{New: func() any { return &encodedPage{head: format.NewEncoder()} }}

// write writes the file, which has its name only once it is complete, durable and
// verified. Then each page knows where it lies.
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

// put puts all pages into a file, in the order of their keys, while encode is a batch ahead. When it
// fails, it ends encode and waits for it, which else would go on with pages of the caller.
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

// refer makes e the value of p, which repeats a page before. That one is encoded already, as it has
// a lower key, so where it lies is known.
func (l *pageList) refer(p *page, e *format.Encoder) {
	has := &l.pages[*p.repeats]
	if p.absent = has.absent; p.absent {
		return // A sparse page of no entries has none that repeats it.
	}
	p.PageRef = has.PageRef
	p.Column = has.key.Column // It repeats nothing itself, or others would repeat the same.
	ref := p.PageRef
	if ref.File == l.Manifest.Number {
		ref.File = 0 // In the file, the file itself is 0; in the table it has its number.
	}
	format.AppendReference(e, ref)
}

// encode encodes all pages, batch by batch, until ctx ends.
func (l *pageList) encode(ctx context.Context, batches chan<- []*encodedPage) {
	for pages := l.pages; len(pages) > 0; {
		batch := make([]*encodedPage, min(batchPages, len(pages)))
		err := parallel.Do(ctx, len(batch), func(i int) error {
			batch[i] = pages[i].encode(&l.Manifest)
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

// encode returns the value of p, a page of the file that m describes. The value of one that repeats
// another is left to refer, which needs that one encoded first.
func (p *page) encode(m *format.Manifest) *encodedPage {
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
		e.content, p.append = e.buf, nil // With the sparse array that it may hold.
	}
	if p.absent = len(e.content) == 0; !p.absent {
		p.PageRef = format.PageRef{File: m.Number, CRC: e.begin(m.Compressed)}
	}
	return e
}

// begin makes the head of a page, and compresses its content if that is wanted and of
// use. It returns the checksum of the content.
func (e *encodedPage) begin(compress bool) (crc uint32) {
	if !compress {
		return format.PageHead(e.head, e.content)
	}
	e.content, crc = format.CompressedHead(e.head, &e.frame, e.content)
	return crc
}
