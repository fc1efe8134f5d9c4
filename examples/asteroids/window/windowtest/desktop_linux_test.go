package windowtest

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"github.com/jezek/xgb/xtest"

	"github.com/stet-ecs/stet/persist/inspect"
)

// These are the codes of keys of the X server.
const keySpace, keyUp, keyR = 65, 111, 27

// A desktop is a display without a monitor.
type desktop struct {
	t    *testing.T
	name string
	conn *xgb.Conn
	root xproto.Window
}

func startDesktop(t *testing.T) *desktop {
	t.Helper()
	if _, err := exec.LookPath("Xvfb"); err != nil {
		t.Skip("no Xvfb found: run make window to install it")
	}
	// The server chooses a free display, and writes its number to the pipe.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp")
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var number int
	if _, err := fmt.Fscan(r, &number); err != nil {
		t.Fatal(err)
	}
	d := &desktop{t: t, name: fmt.Sprintf(":%d", number)}
	if d.conn, err = xgb.NewConnDisplay(d.name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.conn.Close)
	if err := xtest.Init(d.conn); err != nil {
		t.Fatal(err)
	}
	d.root = xproto.Setup(d.conn).DefaultScreen(d.conn).Root
	return d
}

// key presses or releases a key.
func (d *desktop) key(kind byte, code byte) {
	d.t.Helper()
	if err := xtest.FakeInputChecked(d.conn, kind, code, 0, d.root, 0, 0, 0).Check(); err != nil {
		d.t.Fatal(err)
	}
}

// shot returns a picture of the display.
func (d *desktop) shot(name string) image.Image {
	d.t.Helper()
	reply, err := xproto.GetImage(d.conn, xproto.ImageFormatZPixmap, xproto.Drawable(d.root), 0, 0, 1280, 800, ^uint32(0)).Reply()
	if err != nil {
		d.t.Fatal(err)
	}
	m := image.NewRGBA(image.Rect(0, 0, 1280, 800))
	for i := range 1280 * 800 {
		b := reply.Data[4*i:]
		m.Set(i%1280, i/1280, color.RGBA{b[2], b[1], b[0], 255})
	}
	if *shots != "" {
		f, err := os.Create(filepath.Join(*shots, name+".png"))
		if err == nil {
			err = png.Encode(f, m)
		}
		if err != nil {
			d.t.Fatal(err)
		}
		f.Close()
	}
	return m
}

// start starts the game.
func (d *desktop) start(bin, dir string) *exec.Cmd {
	d.t.Helper()
	cmd := exec.Command(bin, "-dir", dir)
	cmd.Env = append(os.Environ(), "DISPLAY="+d.name, "LIBGL_ALWAYS_SOFTWARE=1")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// until waits until the newest state in the store fulfills ok, and returns its tick.
func until(t *testing.T, dir, what string, ok func(tick uint64) bool) uint64 {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if tick := newest(dir); ok(tick) {
			return tick
		}
		if time.Now().After(end) {
			t.Fatalf("waiting for %s: the store is at tick %d", what, newest(dir))
		}
	}
}

// newest returns the tick of the newest state in a store, or 0 if it cannot be read yet.
func newest(dir string) uint64 {
	v, err := inspect.OpenReadOnly(context.Background(), dir)
	if err != nil {
		return 0
	}
	defer v.Close()
	seq, err := v.Resolve("@latest")
	if err != nil {
		return 0
	}
	im, err := v.At(context.Background(), seq)
	if err != nil {
		return 0
	}
	return im.Tick
}

// The game in a window plays, goes back in time, and continues after kill -9.
func TestDesktop_RewindAndKill(t *testing.T) {
	d := startDesktop(t)
	bin, dir := filepath.Join(t.TempDir(), "window"), filepath.Join(t.TempDir(), "store")
	if text, err := exec.Command("go", "build", "-o", bin, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cmd := d.start(bin, dir)
	until(t, dir, "the store", func(uint64) bool { _, err := os.Stat(dir); return err == nil })
	for time.Sleep(2 * time.Second); newest(dir) < 100; time.Sleep(100 * time.Millisecond) {
		d.key(xproto.KeyPress, keyUp) // Press the keys until the window has the focus.
		d.key(xproto.KeyPress, keySpace)
	}
	m := d.shot("desktop-play")
	lit := 0
	for i := range 1280 * 800 {
		if r, _, _, _ := m.At(i%1280, i/1280).RGBA(); r > 0x4000 {
			lit++
		}
	}
	if lit < 500 {
		t.Errorf("the window shows %d bright pixels", lit)
	}
	d.key(xproto.KeyRelease, keyUp)
	d.key(xproto.KeyRelease, keySpace)
	d.key(xproto.KeyPress, keyR)
	time.Sleep(time.Second)
	d.shot("desktop-rewind")
	d.key(xproto.KeyRelease, keyR)
	before := newest(dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	d.start(bin, dir)
	time.Sleep(2 * time.Second)
	for newest(dir) < before+30 {
		d.key(xproto.KeyPress, keyUp)
		time.Sleep(100 * time.Millisecond)
	}
}
