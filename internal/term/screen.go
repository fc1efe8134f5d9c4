package term

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
)

// A screen is the destination of results. On a terminal, it buffers the output until Close or until
// the output is longer than the terminal. Then a pager prints the buffered and the later output.
// Elsewhere, output is written directly to out.
type screen struct {
	out    io.Writer
	height int    // The number of lines of the terminal. 0 means no pager.
	pager  string // A command line for the shell.

	held   bytes.Buffer // All output so far, while the output fits on the terminal.
	lines  int          // Number of lines in held.
	pipe   io.WriteCloser
	paging *exec.Cmd // The running pager, or nil.

	began  func() // Called before the first write to s.out; may be nil.
	failed func() // Called when a write fails; may be nil.
}

// pageBeyond turns on the pager for output of at least height lines. It does nothing if pager is
// "".
func (s *screen) pageBeyond(height int, pager string) {
	if pager != "" {
		s.height, s.pager = height, pager
	}
}

// unpaged prints the buffered output, and turns off the pager for later output.
func (s *screen) unpaged() error {
	s.height = 0
	_, err := s.pass(s.out, s.held.Bytes())
	s.held.Reset()
	return err
}

// Write buffers p, or writes p to the pager or to out.
func (s *screen) Write(p []byte) (int, error) {
	if s.began != nil && len(p) > 0 {
		s.began()
		s.began = nil
	}
	if s.height == 0 {
		return s.pass(s.out, p)
	}
	if s.pipe != nil {
		return s.pass(s.pipe, p)
	}
	s.held.Write(p)
	if s.lines += bytes.Count(p, []byte("\n")); s.lines < s.height {
		return len(p), nil
	}
	to := s.page()
	_, err := s.pass(to, s.held.Bytes())
	s.held.Reset()
	return len(p), err
}

// pass writes p to w. If the write fails, pass calls s.failed(), so that the command can end early.
func (s *screen) pass(w io.Writer, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := w.Write(p)
	if err != nil && s.failed != nil {
		s.failed()
	}
	return n, err
}

// page starts the pager and returns the writer for the output. If the pager cannot be started, it
// returns out. The shell starts the pager, because PAGER may contain arguments.
func (s *screen) page() io.Writer {
	cmd := exec.Command("sh", "-c", s.pager)
	cmd.Stdout, cmd.Stderr = s.out, os.Stderr
	cmd.Env = append(os.Environ(), pagerDefaults(os.Getenv)...)
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.height = 0
		return s.out
	}
	s.pipe, s.paging = pipe, cmd
	return pipe
}

// Close prints the buffered output, or waits for the pager.
func (s *screen) Close() error {
	if s.paging == nil {
		_, err := s.pass(s.out, s.held.Bytes())
		return err
	}
	err := s.pipe.Close() // This ends the pager's input. The pager runs until the user quits it.
	// The exit status of a pager does not describe the output.
	_ = s.paging.Wait()
	return err
}

// pagerOf returns the pager in the environment, or "" if it is cat. The default is less or more.
func pagerOf(getenv func(string) string, has func(string) bool) string {
	for _, name := range []string{"ECSDUMP_PAGER", "PAGER"} {
		if p := strings.TrimSpace(getenv(name)); p == "cat" {
			return ""
		} else if p != "" {
			return p
		}
	}
	for _, p := range []string{"less", "more"} {
		if getenv("TERM") != "dumb" && has(p) {
			return p
		}
	}
	return ""
}

// pagerDefaults returns settings for less if the user has none. With these settings, less shows
// colours, exits if everything fits, leaves the text on the terminal, and does not fold lines.
func pagerDefaults(getenv func(string) string) []string {
	if getenv("LESS") != "" {
		return nil
	}
	return []string{"LESS=FRSX"}
}

// hasProgram reports whether the program is in the PATH.
func hasProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}
