package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// conwayRule is the rule of every [Pattern]: birth on 3 neighbours, survival on
// 2 or 3.
const conwayRule = "B3/S23"

// Limits of a pattern.
const (
	maxCells = 1 << 24 // The maximum number of living cells, which need 128 MiB.
	maxLine  = 1 << 20 // The maximum number of bytes of a line.
)

// A Cell is a position on the plane. X grows to the right, Y grows downwards.
type Cell struct{ X, Y int32 }

// A Pattern is the content of a pattern file.
type Pattern struct {
	Name  string
	Rule  string // Always "B3/S23", even if the file has another notation of this rule.
	Cells []Cell // The living cells without duplicates, ordered by row and then by column.
}

// These expressions match parts of a pattern file. An old form of a rule has the survival digits
// first, then the birth digits, both without letters.
var (
	rleHeader = regexp.MustCompile(`^x\s*=\s*(\d+)[\s,]*y\s*=\s*(\d+)[\s,]*(?:rule\s*=(.*?))?[\s,]*$`)
	rleItem   = regexp.MustCompile(`^(\d*)\s*([bo.Axyz$!])\s*`)
	// rleX matches the start of a header, such as "x = 3". A body can also begin with x, which is a
	// living cell.
	rleX    = regexp.MustCompile(`^x\s*=`)
	rleRule = regexp.MustCompile(`^(?i:B3/?S23|S23/?B3|23/3|Life)$`)
)

// ParseRLE reads a pattern in the run-length encoded format for Conway's Life (LifeWiki, "Run
// Length Encoded"):
//
//	#N Glider                       lines about the pattern
//	#C The smallest spaceship.
//	#r 23/3                         rule, as survival and birth
//	x = 3, y = 3, rule = B3/S23     header
//	bo$2bo$3o!                      body
//
// The body consists of tags, each with an optional count before it:
//
//	b .          dead cell
//	o A x y z    living cell
//	$            end of a row
//	!            end of the pattern; the following text is ignored
//
// The lines about the pattern and the header are optional. #N is the name, and #r the rule. A
// position is ignored: every pattern begins at (0, 0). A pattern of size 0 can end with its
// header. Line ends can be those of Unix, Windows or an old Mac, and the file can begin with a byte
// order mark.
//
// ParseRLE returns an error if a pattern has no end or another rule. It also returns an error for
// cells outside of the size in the header. The error names the line.
func ParseRLE(r io.Reader) (*Pattern, error) {
	p := &rleParser{pattern: &Pattern{Rule: conwayRule}, width: math.MaxInt32, height: math.MaxInt32}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	lines.Split(splitLine)
	n := 1
	for ; lines.Scan(); n++ {
		text := lines.Text()
		if n == 1 {
			text = strings.TrimPrefix(text, "\uFEFF")
		}
		done, err := p.line(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if done {
			return p.pattern, nil
		}
	}
	switch err := lines.Err(); {
	case err != nil:
		return nil, fmt.Errorf("line %d: %w", n, err)
	case p.width == 0 || p.height == 0:
		return p.pattern, nil
	}
	return nil, fmt.Errorf("line %d: the file ends before the pattern does, with '!'", n)
}

// splitLine is a [bufio.SplitFunc] for lines that end with \n, \r or both.
func splitLine(data []byte, atEOF bool) (advance int, line []byte, err error) {
	end := bytes.IndexAny(data, "\r\n")
	if end < 0 {
		if atEOF && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	}
	next := end + 1
	if data[end] == '\r' {
		if next == len(data) && !atEOF {
			return 0, nil, nil // Read on, because \n may follow.
		}
		if next < len(data) && data[next] == '\n' {
			next++
		}
	}
	return next, data[:end], nil
}

// An rleParser fills a pattern.
type rleParser struct {
	pattern       *Pattern
	width, height int // The size in the header.
	inBody        bool
	column, row   int // The position of the next cell.
}

// line parses a line, and reports whether it ends the body.
func (p *rleParser) line(text string) (done bool, err error) {
	switch {
	case text == "":
		return false, nil
	case text[0] == '#':
		return false, p.about(text)
	case !p.inBody && rleX.MatchString(text):
		p.inBody = true
		return false, p.header(text)
	// A plaintext pattern starts with '!', and must not be read as an empty pattern.
	case text[0] == '!' && !p.inBody:
		return false, errors.New("neither header nor cells before '!'")
	}
	p.inBody = true
	for text != "" {
		item := rleItem.FindStringSubmatch(text)
		if item == nil {
			return false, fmt.Errorf("no count and tag of two states at %.10q", text)
		}
		if text = text[len(item[0]):]; item[2] == "!" {
			return true, nil
		}
		if err := p.item(item[1], item[2]); err != nil {
			return false, err
		}
	}
	return false, nil
}

// about parses a line that describes the pattern.
func (p *rleParser) about(text string) error {
	if name, ok := strings.CutPrefix(text, "#N"); ok {
		p.pattern.Name = strings.TrimSpace(name)
	}
	if rule, ok := strings.CutPrefix(text, "#r"); ok && strings.TrimSpace(rule) != "" {
		return checkRule(rule)
	}
	return nil
}

// checkRule returns an error if rule is not Conway's rule.
func checkRule(rule string) error {
	rule = strings.Join(strings.Fields(rule), "")
	if !rleRule.MatchString(rule) {
		return fmt.Errorf("rule %q is not Conway's (%s)", rule, conwayRule)
	}
	return nil
}

// header parses the header.
func (p *rleParser) header(text string) (err error) {
	h := rleHeader.FindStringSubmatch(text)
	if h == nil {
		return fmt.Errorf("%.80q is no header like x = 3, y = 3, rule = %s", text, conwayRule)
	}
	if strings.Contains(text, "rule") {
		if err := checkRule(h[3]); err != nil {
			return err
		}
	}
	if p.width, err = number(h[1]); err == nil {
		p.height, err = number(h[2])
	}
	return err
}

// number parses a number of at most 31 bits.
func number(digits string) (int, error) {
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%.20s is larger than %d", digits, math.MaxInt32)
	}
	return int(n), nil
}

// item processes a tag with an optional count.
func (p *rleParser) item(count, tag string) error {
	n, err := number(cmp.Or(count, "1"))
	switch {
	case err != nil:
		return err
	case n == 0:
		return errors.New("count is zero")
	case tag == "$" && n <= p.height-p.row:
		p.row, p.column = p.row+n, 0
		return nil
	case tag == "$" || p.row == p.height:
		return fmt.Errorf("more rows than y = %d", p.height)
	case n > p.width-p.column:
		return fmt.Errorf("row %d is longer than x = %d", p.row+1, p.width)
	}
	first := p.column
	p.column += n
	if tag == "b" || tag == "." {
		return nil
	}
	if n > maxCells-len(p.pattern.Cells) {
		return fmt.Errorf("more than %d living cells", maxCells)
	}
	for x := first; x < p.column; x++ {
		p.pattern.Cells = append(p.pattern.Cells, Cell{X: int32(x), Y: int32(p.row)})
	}
	return nil
}
