package pagefile_test

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// A file is written, read, and damaged. The error names the damaged block.
func Example() {
	dir, err := os.MkdirTemp("", "pagefile")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer root.Close()

	value := make([]byte, 100_000)
	info, err := pagefile.Create(disk.Dir(root), "world", func(w *pagefile.Writer) error {
		for page := range uint32(10) {
			if err := w.Put(pagefile.Key{Column: 3, Page: page}, value); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Println(info.Pages, "pages in", info.Blocks, "blocks,", err)

	f, err := root.OpenFile("world", os.O_RDWR, 0)
	if err != nil {
		log.Fatal(err)
	}
	f.WriteAt([]byte("!"), 600_000)
	f.Close()

	file, err := pagefile.Open(disk.Dir(root), "world")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	_, ok, err := file.Get(pagefile.Key{Column: 3, Page: 1})
	fmt.Println(ok, err)
	_, ok, err = file.Get(pagefile.Key{Column: 3, Page: 5})
	fmt.Println(ok, err)
	fmt.Println(errors.Is(err, disk.ErrCorrupt))
	// Output:
	// 10 pages in 16 blocks, <nil>
	// true <nil>
	// false corrupt: world: 65536 bytes at offset 589824: checksum differs
	// true
}
