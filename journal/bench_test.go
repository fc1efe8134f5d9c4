package journal_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal"
)

func benchFS(b *testing.B) disk.FS {
	root, err := os.OpenRoot(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { root.Close() })
	return disk.Dir(root)
}

// BenchmarkAppend measures the cost of an append for the caller.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			j := open(b, benchFS(b), journal.Options{})
			content := payload(1, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			appendOne := func() {
				if _, err := j.Append(0, 0, 0, append(j.Buffer(), content...)); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				appendOne()
			}
			b.StopTimer()
			closeJournal(b, j, 0)
		})
	}
}

// BenchmarkScan measures reading and checking 64 MiB.
func BenchmarkScan(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			fs := benchFS(b)
			j := open(b, fs, journal.Options{Sync: journal.SyncNever})
			for range 64 << 20 / size {
				add(b, j, 0, size)
			}
			closeJournal(b, j, 0)
			b.SetBytes(64 << 20)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := journal.Scan(ctx, fs, 0, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
