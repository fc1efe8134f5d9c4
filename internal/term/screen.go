package term

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
)

// A screen is where results go. If it is a terminal and they are longer than that,
// they go through a pager.
//
//	short output    held ──Close──▶ out
//	long output     held ──▶ pager ──▶ out
//	no terminal     ──▶ out
type screen struct {
	out    io.Writer
	height int    // Lines that fit; 0: no pager.
	pager  string // A command line for the shell.

	held   bytes.Buffer // All output, while it fits.
	lines  int          // In held.
	pipe   io.WriteCloser
	paging *exec.Cmd // nil: not started.

	began  func() // Called before the first write to out; may be nil.
	failed func() // Called when out takes no more; may be nil.
}

// pageBeyond sends output of more lines than height through pager, a command line;
// "" is none.
func (s *screen) pageBeyond(height int, pager string) {
	if pager != "" {
		s.height, s.pager = height, pager
	}
}

// unpaged prints from now on what comes at once, and what is held.
func (s *screen) unpaged() error {
	s.height = 0
	_, err := s.pass(s.out, s.held.Bytes())
	s.held.Reset()
	return err
}

// Write holds p, or passes it on.
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

// pass writes on. If nobody reads it says so, so that a walk which prints can stop.
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

// page starts the pager and returns what to write to. A pager that cannot be
// started is none. A shell starts it, since PAGER may have arguments.
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

// Close prints what is held, or waits for the pager.
func (s *screen) Close() error {
	if s.paging == nil {
		_, err := s.pass(s.out, s.held.Bytes())
		return err
	}
	err := s.pipe.Close() // For the pager that is the end; it stays until its user has read.
	// How a pager ends says nothing about the output.
	_ = s.paging.Wait()
	return err
}

// pagerOf returns the pager that the environment asks for, or "". Without a wish it
// is less, if it is there.
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

// pagerDefaults are settings for pagers whose user has none: less shows colours,
// ends if all fits, leaves the text on the terminal and does not fold lines.
func pagerDefaults(getenv func(string) string) []string {
	if getenv("LESS") != "" {
		return nil
	}
	return []string{"LESS=FRSX"}
}

// hasProgram reports whether the shell would find a program.
func hasProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}
