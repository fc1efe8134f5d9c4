package browsertest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/stet-ecs/stet/persist"
)

// keepVariable is the environment variable that makes a child process keep a store open. Its
// value is the directory of the store.
const keepVariable = "STET_KEEP"

func TestMain(m *testing.M) {
	if dir := os.Getenv(keepVariable); dir != "" {
		keepOpen(dir)
	}
	os.Exit(m.Run())
}

// keepOpen makes a store, prints a line when the store is open, and waits until the process is
// killed.
func keepOpen(dir string) {
	g := newGame()
	s, err := persist.Open(context.Background(), dir, g.world, persist.Options{})
	if err == nil {
		g.spawn("orc")
		err = s.Commit()
	}
	if err == nil {
		err = s.Sync(context.Background())
	}
	fmt.Println("open", err)
	time.Sleep(time.Hour)
}

// The writing program is killed while the page is open. The page must report this once. It must
// report again when another program opens the store.
func TestPage_ReportsKilledWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "D")
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), keepVariable+"="+dir)
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Process.Kill() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "open <nil>\n" {
		t.Fatal(line, err)
	}
	p := open(t, browser(t), serve(t, dir), 1280, 800, false)
	p.shows("#entities", "Position{")
	p.key("7")
	p.shows("#screen", "A program has the store open.")
	if p.text("#writer") != "" {
		t.Errorf("the program runs, but the page shows %q", p.text("#writer"))
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait()
	p.shows("#writer", "The program that wrote this store has ended without closing it, seen at 20")
	p.shows("#writer", fmt.Sprintf("process %d on ", program.Process.Pid))
	p.shows("#screen", "The store opens.")
	p.shot("writer-ended")
	p.click("#writer button")
	p.until(`document.querySelector("#writer").hidden`)

	s, err := persist.Open(context.Background(), dir, newGame().world, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.shows("#writer", "A program has opened the store, seen at 20")
	p.shows("#writer", fmt.Sprintf("process %d on ", os.Getpid()))
	p.shows("#screen", "A program has the store open.")
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	p.shows("#writer", "The program that wrote this store has closed it, seen at 20")
	p.shows("#screen", "closed cleanly")
	p.do(chromedp.Reload())
	p.shows("#writer", "has closed it")
}
