package persist_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const sectorSize = 512

// A device simulates a disk with a write cache. It has the content that reads return and the
// content of the medium. It also has the cached writes, which a power cut may lose.
type device struct {
	mu      sync.Mutex
	now     []byte
	medium  []byte
	cached  []diskWrite // Writes since the last flush, in order.
	flushes int

	calls int    // Number of writes and flushes until cut() is called; 0 means never.
	cut   func() // Called before the write or flush that sets the field calls to 0.
}

type diskWrite struct {
	offset int
	data   []byte
}

func newDevice(content []byte) *device {
	return &device{now: content, medium: slices.Clone(content)}
}

func (d *device) read(offset, n int) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	offset = min(offset, len(d.now))
	return slices.Clone(d.now[offset:min(offset+n, len(d.now))])
}

// before(n, cut) makes the device call cut right before its n-th write or flush from now on.
func (d *device) before(n int, cut func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls, d.cut = n, cut
}

// call counts a write or a flush.
func (d *device) call() {
	if d.calls--; d.calls == 0 {
		d.cut()
	}
}

func (d *device) write(offset int, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.call()
	n := copy(d.now[min(offset, len(d.now)):], data)
	d.cached = append(d.cached, diskWrite{offset, slices.Clone(data[:n])})
}

func (d *device) flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.call()
	for _, w := range d.cached {
		copy(d.medium[w.offset:], w.data)
	}
	d.cached = nil
	d.flushes++
}

// left returns what the medium holds if the power fails now. It draws what is lost: all unflushed
// writes, the last of them, or some of their sectors. The caller holds d.mu.
func (d *device) left(rng *rand.Rand) (content []byte, how string) {
	content = slices.Clone(d.medium)
	sectors, kept := 0, 0
	kind, first := rng.IntN(3), rng.IntN(len(d.cached)+1)
	for i, w := range d.cached {
		for from := 0; from < len(w.data); from += sectorSize {
			sectors++
			if kind == 0 || kind == 1 && i >= first || kind == 2 && rng.IntN(2) == 0 {
				continue
			}
			kept += copy(content[w.offset+from:], w.data[from:min(from+sectorSize, len(w.data))]) / sectorSize
		}
	}
	return content, fmt.Sprintf("kept %d of the %d sectors in its cache", kept, sectors)
}

// served is a file with the content of a disk. The kernel reads it by the FUSE protocol. The file
// is the root of the file system, so few requests occur.
//
// A separate process answers the requests. It uses no file of the file system that it serves. When
// that process ends, callers that wait for the disk get an error. Otherwise they would wait
// forever. The process has its own mount namespace, so its end does not unmount the disk. An
// unmount would wait for answers of the process itself.
type served struct {
	name    string
	process *exec.Cmd
	say     io.Writer
	said    *bufio.Scanner
}

func init() { children["disk"] = serveDisk }

// serve serves the content of a file as a disk until close is called.
func serve(t testing.TB, content string) *served {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	fuse := os.NewFile(uintptr(fd), "/dev/fuse")
	defer fuse.Close()
	s := &served{name: filepath.Join(t.TempDir(), "disk"), process: newChild("disk", content, "").cmd}
	require.NoError(t, os.WriteFile(s.name, nil, 0o600))
	options := fmt.Sprintf("fd=%d,rootmode=100600,user_id=0,group_id=0", fd)
	require.NoError(t, unix.Mount("disk", s.name, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options))
	s.process.ExtraFiles = []*os.File{fuse}
	s.process.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	s.say, err = s.process.StdinPipe()
	require.NoError(t, err)
	out, err := s.process.StdoutPipe()
	require.NoError(t, err)
	s.process.Stderr = os.Stderr
	s.said = bufio.NewScanner(out)
	require.NoError(t, s.process.Start())
	return s
}

// cut cuts the power before the n-th write or flush from now on, and calls atThat while the disk is
// stopped. Then it writes the content of the medium to the file from which serve made the disk.
func (s *served) cut(n int, seed uint64, atThat func()) (how string) {
	fmt.Fprintln(s.say, n, seed)
	s.said.Scan()
	atThat()
	fmt.Fprintln(s.say)
	s.said.Scan()
	return s.said.Text()
}

// close removes the disk, once the loop device has released it.
func (s *served) close() (err error) {
	for range 2000 {
		if err = unix.Unmount(s.name, 0); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return errors.Join(err, s.process.Process.Kill(), ignored(s.process.Wait()))
}

func ignored(error) error { return nil }

// serveDisk answers requests for a disk and cuts its power on command.
func serveDisk(file, _ string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	d := newDevice(content)
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			var n int
			var seed uint64
			fmt.Sscan(in.Text(), &n, &seed)
			done := make(chan struct{})
			d.before(n, func() {
				defer close(done)
				fmt.Println("cutting")
				in.Scan()
				left, how := d.left(rand.New(rand.NewPCG(seed, 0)))
				if err := os.WriteFile(file, left, 0o600); err != nil {
					how = err.Error()
				}
				fmt.Println(how)
			})
			<-done
		}
	}()
	answer(3, d)
	return nil
}

const (
	fuseHeader   = 40 // Size of the header of a request.
	fuseReply    = 16 // Size of the header of an answer.
	fuseWriteIn  = 40
	fuseMaxWrite = 128 << 10
)

// Request numbers of the protocol.
const (
	fuseForget  = 2
	fuseGetAttr = 3
	fuseSetAttr = 4
	fuseOpen    = 14
	fuseRead    = 15
	fuseWrite   = 16
	fuseRelease = 18
	fuseFsync   = 20
	fuseFlush   = 25
	fuseInit    = 26
)

// answer answers requests until the file system is unmounted.
func answer(fuse int, d *device) {
	request := make([]byte, fuseMaxWrite+(64<<10))
	for {
		n, err := unix.Read(fuse, request)
		switch {
		// ENOENT: the request was interrupted.
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT):
			continue
		case err != nil:
			return
		}
		opcode, unique := binary.LittleEndian.Uint32(request[4:]), binary.LittleEndian.Uint64(request[8:])
		if opcode == fuseForget {
			continue
		}
		body, errno := d.do(opcode, request[fuseHeader:n])
		answer := make([]byte, fuseReply, fuseReply+len(body))
		binary.LittleEndian.PutUint32(answer, uint32(fuseReply+len(body)))
		binary.LittleEndian.PutUint32(answer[4:], uint32(-int32(errno)))
		binary.LittleEndian.PutUint64(answer[8:], unique)
		if _, err := unix.Write(fuse, append(answer, body...)); errors.Is(err, unix.ENODEV) {
			return
		}
	}
}

// do carries out one request and returns the body of the answer.
func (d *device) do(opcode uint32, in []byte) (body []byte, errno unix.Errno) {
	le := binary.LittleEndian
	switch opcode {
	case fuseInit:
		out := make([]byte, 64)
		le.PutUint32(out[0:], 7)
		le.PutUint32(out[4:], 31)
		le.PutUint32(out[8:], fuseMaxWrite) // Maximum read-ahead.
		le.PutUint32(out[12:], 1<<5)        // Allow writes of more than a page.
		le.PutUint16(out[16:], 16)          // Maximum number of requests under way.
		le.PutUint16(out[18:], 12)          // Congestion threshold.
		le.PutUint32(out[20:], fuseMaxWrite)
		le.PutUint32(out[24:], 1)
		return out, 0
	case fuseGetAttr, fuseSetAttr:
		out := make([]byte, 104)
		le.PutUint64(out[0:], 3600) // Validity in seconds.
		le.PutUint64(out[16:], 1)   // Inode.
		le.PutUint64(out[24:], uint64(len(d.now)))
		le.PutUint64(out[32:], uint64(len(d.now)/sectorSize))
		le.PutUint32(out[76:], unix.S_IFREG|0o600)
		le.PutUint32(out[80:], 1) // Links.
		le.PutUint32(out[96:], 4096)
		return out, 0
	case fuseOpen:
		return make([]byte, 16), 0
	case fuseRead:
		return d.read(int(le.Uint64(in[8:])), int(le.Uint32(in[16:]))), 0
	case fuseWrite:
		data := in[fuseWriteIn:]
		d.write(int(le.Uint64(in[8:])), data)
		return le.AppendUint64(nil, uint64(len(data))), 0
	case fuseFsync:
		d.flush()
		return nil, 0
	case fuseFlush, fuseRelease:
		return nil, 0
	}
	return nil, unix.ENOSYS
}

// loop makes a file a block device and mounts it. Unmounting also removes the device.
func loop(t testing.TB, file, options string) (dir string) {
	t.Helper()
	// Do not use os.Open: it registers the file with Go's poller.
	fd, err := unix.Open(file, unix.O_RDWR|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	require.NoError(t, err)
	defer control.Close()
	dir = t.TempDir()
	for {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		require.NoError(t, err)
		name := fmt.Sprintf("/dev/loop%d", n)
		device, err := os.OpenFile(name, os.O_RDWR, 0)
		require.NoError(t, err)
		config := unix.LoopConfig{Fd: uint32(fd)}
		config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &config); errors.Is(err, unix.EBUSY) {
			device.Close() // Another process took the device first.
			continue
		}
		require.NoError(t, err)
		err = unix.Mount(name, dir, "ext4", unix.MS_NOATIME, options)
		device.Close()
		require.NoError(t, err, "%s with %q", name, options)
		return dir
	}
}

// newExt4 writes an empty ext4 file system to a file.
func newExt4(t testing.TB, file string, size int64) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Truncate(file, size))
	out, err := exec.Command("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", file).CombinedOutput()
	require.NoError(t, err, string(out))
}
