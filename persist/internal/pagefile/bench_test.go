package pagefile_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

const benchBytes = 64 << 20

// noise returns n bytes without repeated sequences.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// writePlain writes and syncs the same bytes in one plain file. Its speed is the upper limit for a
// page file.
func writePlain(b *testing.B, root *os.Root, data []byte, size int) {
	f, err := root.Create("plain")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for at := 0; at < len(data); at += size {
		if _, err := f.Write(data[at : at+size]); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
}

func writePages(b *testing.B, root *os.Root, opts pagefile.Options, data []byte, size int) pagefile.Info {
	info, err := pagefile.CreateWith(disk.Dir(root), "pages", opts, func(w *pagefile.Writer) error {
		for at := 0; at < len(data); at += size {
			if err := w.Put(pagefile.Key{Page: uint32(at / size)}, data[at:at+size]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return info
}

// BenchmarkCreate writes 64 MiB and reports the speed relative to a plain file ("ofplain").
func BenchmarkCreate(b *testing.B) {
	data := noise(benchBytes)
	for _, size := range []int{16 << 10, 64 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			root := pagefile.OpenRoot(b)
			b.SetBytes(benchBytes)
			b.ReportAllocs()
			var plain, pages time.Duration
			for b.Loop() {
				start := time.Now()
				root.Remove("plain")
				writePlain(b, root, data, size)
				between := time.Now()
				writePages(b, root, pagefile.Options{}, data, size)
				plain += between.Sub(start)
				pages += time.Since(between)
			}
			b.ReportMetric(float64(plain)/float64(pages), "ofplain")
			b.ReportMetric(benchBytes/1e6/(plain.Seconds()/float64(b.N)), "plainMB/s")
			b.ReportMetric(benchBytes/1e6/(pages.Seconds()/float64(b.N)), "pagesMB/s")
		})
	}
}

// openBench writes data in values of size bytes and opens the file.
func openBench(b *testing.B, data []byte, size int) *pagefile.File {
	root := pagefile.OpenRoot(b)
	writePages(b, root, pagefile.Options{}, data, size)
	f, err := pagefile.Open(disk.Dir(root), "pages")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return f
}

func BenchmarkScan(b *testing.B) {
	f := openBench(b, noise(benchBytes), 64<<10)
	b.SetBytes(benchBytes)
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Scan(func(pagefile.Key, []byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	f := openBench(b, noise(benchBytes), 64<<10)
	b.SetBytes(f.Info().Size)
	for b.Loop() {
		if err := f.Verify(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{128, 16 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f := openBench(b, noise(benchBytes), size)
			n := uint32(benchBytes / size)
			b.ReportAllocs()
			r := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				if _, ok, err := f.Get(pagefile.Key{Page: r.Uint32N(n)}); err != nil || !ok {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	root := pagefile.OpenRoot(b)
	writePages(b, root, pagefile.Options{}, noise(benchBytes), 16<<10)
	b.ReportAllocs()
	for b.Loop() {
		f, err := pagefile.Open(disk.Dir(root), "pages")
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

// BenchmarkBudgetBolt compares the two writers. bbolt may need up to twice the time of the
// sequential writer, and 5 % more bytes.
func BenchmarkBudgetBolt(b *testing.B) {
	for _, size := range []int{512, 16 << 10, 64 << 10} {
		data := noise(benchBytes)
		root := pagefile.OpenRoot(b)
		write := func(opts pagefile.Options) (time.Duration, int64) {
			start := time.Now()
			info := writePages(b, root, opts, data, size)
			return time.Since(start), info.Size
		}
		var times [2]time.Duration
		var sizes [2]int64
		for round := range 7 {
			for i, opts := range writers {
				var took time.Duration
				if took, sizes[i] = write(opts); round == 0 || took < times[i] {
					times[i] = took
				}
			}
		}
		b.Run(fmt.Sprintf("time/%d", size), func(b *testing.B) {
			b.ReportMetric(float64(times[1])/float64(times[0]), "x/limit")
			b.ReportMetric(2, "x/budget")
			b.ReportMetric(float64(times[1].Microseconds())/1e3, "ms")
		})
		b.Run(fmt.Sprintf("bytes/%d", size), func(b *testing.B) {
			b.ReportMetric(float64(sizes[1])/float64(sizes[0]), "x/limit")
			b.ReportMetric(1.05, "x/budget")
		})
	}
}
