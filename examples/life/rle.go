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
	maxCells = 1 << 24 // Living: 128 MiB of them.
	maxLine  = 1 << 20 // Bytes of a line.
)

// A Cell is a position on the plane. X grows to the right, Y grows downwards.
type Cell struct{ X, Y int32 }

// A Pattern is the content of a pattern file.
type Pattern struct {
	Name  string
	Rule  string // Always "B3/S23", in whatever form the file has it.
	Cells []Cell // The living cells by row and then by column, each once.
}

// These expressions match the parts of a pattern file. Before birth came first and had a letter,
// survival came first and had none.
var (
	rleHeader = regexp.MustCompile(`^x\s*=\s*(\d+)[\s,]*y\s*=\s*(\d+)[\s,]*(?:rule\s*=(.*?))?[\s,]*$`)
	rleItem   = regexp.MustCompile(`^(\d*)\s*([bo.Axyz$!])\s*`)
	rleX      = regexp.MustCompile(`^x\s*=`) // Without a header, a body can begin with the cell x.
	rleRule   = regexp.MustCompile(`^(?i:B3/?S23|S23/?B3|23/3|Life)$`)
)

// ParseRLE reads a pattern in the run-length encoded format in which patterns
// of Conway's Life are exchanged (LifeWiki, "Run Length Encoded"):
//
//	#N Glider                       lines about the pattern
//	#C The smallest spaceship.
//	#r 23/3                         rule, as survival and birth
//	x = 3, y = 3, rule = B3/S23     header
//	bo$2bo$3o!                      body
//
// A body item is a tag, or a count and a tag. The tags b and . are dead cells, and
// $ ends a row. The tags o, A, x, y and z are living cells: some collections mark
// parts of a pattern with x, y and z. The body ends with !, and ParseRLE ignores what
// follows. A pattern without rows or columns can end with its header.
//
// Lines that start with # are about the pattern: #N is the name, #r the rule. A
// position is ignored: a pattern begins at (0, 0). The header can be missing. Lines end
// as on Unix, Windows or an old Mac, and a byte order mark can come first.
//
// A pattern without an end, with another rule, or with cells outside of the size in its header is
// an error that names the line.
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
			return 0, nil, nil // Wait for the \n that may follow.
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
	width, height int // As the header has them.
	inBody        bool
	column, row   int // Of the next cell.
}

// line reads a line, and reports whether it ends the body.
func (p *rleParser) line(text string) (done bool, err error) {
	switch {
	case text == "":
		return false, nil
	case text[0] == '#':
		return false, p.about(text)
	case !p.inBody && rleX.MatchString(text):
		p.inBody = true
		return false, p.header(text)
	// A plaintext pattern starts so. It must not count as an empty pattern.
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

// about reads a line about the pattern.
func (p *rleParser) about(text string) error {
	if name, ok := strings.CutPrefix(text, "#N"); ok {
		p.pattern.Name = strings.TrimSpace(name)
	}
	if rule, ok := strings.CutPrefix(text, "#r"); ok && strings.TrimSpace(rule) != "" {
		return checkRule(rule)
	}
	return nil
}

// checkRule returns an error if rule is not Conway's.
func checkRule(rule string) error {
	rule = strings.Join(strings.Fields(rule), "")
	if !rleRule.MatchString(rule) {
		return fmt.Errorf("rule %q is not Conway's (%s)", rule, conwayRule)
	}
	return nil
}

// header reads the header.
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

// number reads a number of 31 bits.
func number(digits string) (int, error) {
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%.20s is larger than %d", digits, math.MaxInt32)
	}
	return int(n), nil
}

// item takes a count, if there is one, and a tag.
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
