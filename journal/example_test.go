package journal_test

import (
	"context"
	"fmt"
	"os"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// A journal in a directory: append, rewind, close, and read the path to the head.
func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	defer root.Close()
	fs := disk.Dir(root)

	// The directory is empty, and so is the log.
	log, _ := journal.Scan(context.Background(), fs, 0, nil)
	j, err := journal.Open(fs, log, journal.Options{})
	if err != nil {
		panic(err)
	}
	add := func(parent uint64, text string) uint64 {
		id, err := j.Append(parent, 0, 0, append(j.Buffer(), text...))
		if err != nil {
			panic(err)
		}
		return id.Seq
	}
	spawn := add(0, "spawn")
	add(spawn, "walk into the lava")
	jump := add(spawn, "jump over it")
	if err := j.Close(context.Background(), jump); err != nil {
		panic(err)
	}

	log, _ = journal.Scan(context.Background(), fs, 0, nil)
	defer log.Close()
	fmt.Println("clean:", log.Clean)
	path, _ := log.Path(0, log.Head)
	for _, e := range path {
		payload, _ := log.Payload(e, nil)
		fmt.Printf("%d after %d: %s\n", e.ID.Seq, e.Parent, payload)
	}
	// Output:
	// clean: true
	// 1 after 0: spawn
	// 3 after 1: jump over it
}

// Damage shows which bytes are lost. All other records are readable.
func ExampleScan_damage() {
	fs := disktest.New()
	log, _ := journal.Scan(context.Background(), fs, 0, nil)
	j, _ := journal.Open(fs, log, journal.Options{})
	for parent := range uint64(3) {
		j.Append(parent, 0, 0, []byte("a payload"))
	}
	j.Close(context.Background(), 3)

	data := fs.Bytes("00000001.seg")
	data[256+64+48] ^= 1 // The first payload byte of the second record.
	fs.Put("00000001.seg", data)

	log, _ = journal.Scan(context.Background(), fs, 0, nil)
	fmt.Println(log.Err())
	for _, e := range log.Entries {
		fmt.Println("record", e.ID.Seq)
	}
	// Output:
	// corrupt: 00000001.seg: 64 bytes at offset 320: payload checksum does not match
	// record 1
	// record 3
}
