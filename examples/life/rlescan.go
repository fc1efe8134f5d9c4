package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// maxTextBytes bounds the text a file can make the reader keep: its header and
// all its lines that start with '#', taken together.
const maxTextBytes = 1 << 20

// A SyntaxError says where a pattern file is wrong, and how.
type SyntaxError struct {
	Line   int    // Counted from 1.
	Column int    // Counted from 1, in bytes.
	Msg    string // What was wrong, in lower case.
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// A place is a position in a file, counted from 1.
type place struct{ line, column int }

// errorf returns a [*SyntaxError] at the place.
func (at place) errorf(format string, args ...any) error {
	return &SyntaxError{Line: at.line, Column: at.column, Msg: fmt.Sprintf(format, args...)}
}

// A scanner hands out the bytes of a file and knows where it is. Lines end with
// LF, CR or CR LF.
type scanner struct {
	r        *bufio.Reader
	at       place // Of the byte that next returns.
	blank    bool  // Whether the line has held only white space so far.
	textLeft int   // How many more bytes text may keep.
	err      error // Sticky: what broke reading, other than the end of the file.
}

// newScanner returns a scanner of r, past a UTF-8 byte order mark if there is
// one.
func newScanner(r io.Reader) *scanner {
	s := &scanner{
		r:        bufio.NewReader(r),
		at:       place{line: 1, column: 1},
		blank:    true,
		textLeft: maxTextBytes,
	}
	mark := []byte("\ufeff")
	if bytes.Equal(s.ahead(len(mark)), mark) {
		s.r.Discard(len(mark)) // Cannot fail: the bytes are in the buffer.
	}
	return s
}

// ahead returns the next n bytes without taking them, or fewer at the end of the
// file, or none after a read error. They are valid until something is taken.
func (s *scanner) ahead(n int) []byte {
	if s.err != nil {
		return nil
	}
	ahead, err := s.r.Peek(n)
	if err != nil && err != io.EOF {
		s.err = err
		return nil
	}
	return ahead
}

// peek returns the next byte without taking it. It returns false at the end of
// the file and after a read error.
func (s *scanner) peek() (byte, bool) {
	if ahead := s.ahead(1); len(ahead) > 0 {
		return ahead[0], true
	}
	return 0, false
}

// next takes one byte. It returns false where peek does.
func (s *scanner) next() (byte, bool) {
	b, ok := s.peek()
	if !ok {
		return 0, false
	}
	s.r.Discard(1) // Cannot fail: the byte was seen.
	s.advance(b)
	return b, true
}

// advance moves the place past b, which has just been taken.
func (s *scanner) advance(b byte) {
	s.at.column++
	if b == '\r' {
		// In CR LF, the LF ends the line.
		after, _ := s.peek()
		if after == '\n' {
			return
		}
	}
	if isLineEnd(b) {
		s.at = place{line: s.at.line + 1, column: 1}
		s.blank = true
	} else if !isSpace(b) {
		s.blank = false
	}
}

// skipSpace takes white space, line ends included.
func (s *scanner) skipSpace() {
	for {
		b, ok := s.peek()
		if !ok || !isSpace(b) {
			return
		}
		s.next()
	}
}

// text takes the rest of the line and returns it without its end.
func (s *scanner) text() (string, error) {
	var text []byte
	for {
		b, ok := s.peek()
		if !ok || isLineEnd(b) {
			return string(text), nil
		}
		if s.textLeft == 0 {
			return "", s.at.errorf("header and '#' lines hold more than %d bytes", maxTextBytes)
		}
		s.textLeft--
		s.next()
		text = append(text, b)
	}
}

func isLineEnd(b byte) bool { return b == '\n' || b == '\r' }

func isSpace(b byte) bool { return b == ' ' || b == '\t' || isLineEnd(b) }

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
