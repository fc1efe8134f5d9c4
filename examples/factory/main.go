// Factory simulates a factory of 50,000 entities: miners, belts, assemblers and chests in 510
// plants. It has no screen: it prints a report from time to time. After kill -9, it continues.
//
// In a plant, belts carry iron from a miner to an assembler of plates, and plates to an assembler
// of gears. Other belts carry copper from a miner to an assembler of wire. The gears and the wire
// reach an assembler of motors, and a belt carries the motors to a chest.
//
// Usage:
//
//	factory [-d DIR] [-ticks N] [-plants N] [-report N] [-load FILE] [-save FILE]
//	        [-workers N] [-every N] [-explain]
//
// The program runs up to tick N. With -d, it records the ticks in a store, and continues the
// factory in the store if there is one. With -load, it begins with a save. With -save, it writes a
// save at the end. With -explain, it only prints which systems run at the same time.
//
// The exit code is 0, 1 after a failure, and 2 for unknown flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.dir, "d", "", "keep the factory in `DIR`; without it, only in memory")
	flag.Uint64Var(&o.ticks, "ticks", 1000, "run up to tick `N`")
	flag.Uint64Var(&o.report, "report", 100, "report every `N` ticks")
	flag.IntVar(&o.plants, "plants", 510, "begin a new factory with `N` plants of 98 entities")
	flag.StringVar(&o.load, "load", "", "begin with the save in `FILE`")
	flag.StringVar(&o.save, "save", "", "write a save to `FILE` at the end")
	flag.IntVar(&o.workers, "workers", 1, "run at most `N` systems at the same time")
	flag.IntVar(&o.every, "every", 16, "journal `N` ticks together; a crash loses up to N-1 more")
	flag.BoolVar(&o.explain, "explain", false, "print which systems run at the same time")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "factory:", err)
		os.Exit(1)
	}
}

// run runs a factory up to its last tick.
func run(ctx context.Context, o options) (err error) {
	if flag.NArg() > 0 || o.plants < 1 || o.report < 1 {
		return errors.New("wants no arguments, and at least 1 for -plants and -report")
	}
	f := newFactory(ecs.Options{}, o)
	if o.explain {
		fmt.Fprint(o.out, f.systems.Explain())
		return nil
	}
	if o.load != "" {
		if err := persist.Load(ctx, o.load, f.world); err != nil {
			return err
		}
	}
	commit := func() error { f.world.Commit(); return nil }
	if o.dir != "" {
		store, err := persist.Open(ctx, o.dir, f.world, persist.Options{CommitEvery: o.every})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close(ctx)) }()
		fmt.Fprintln(o.out, store.Report())
		commit = store.Commit
	}
	begin, first := time.Now(), f.world.Tick()
	for f.world.Tick() < o.ticks {
		f.systems.Step(struct{}{})
		if err := commit(); err != nil {
			return err
		}
	}
	took := time.Since(begin) / time.Duration(max(1, f.world.Tick()-first))
	fmt.Fprintf(o.out, "tick %d: %d entities, digest %v, %v a tick\n",
		f.world.Tick(), f.world.Len(), f.world.Digest(), took)
	if o.save != "" {
		return persist.Save(ctx, o.save, f.world, persist.FileOptions{Compress: true})
	}
	return nil
}
