package main

import (
	"bufio"
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

// A Pattern is what a pattern file says.
type Pattern struct {
	Name  string
	Rule  string // Always "B3/S23", however the file wrote it.
	Cells []Cell // The living ones, by row and then by column, none twice.
}

// The parts of a pattern file. Before birth came first and had a letter, survival
// came first and had none.
var (
	rleHeader = regexp.MustCompile(`^x\s*=\s*(\d+)[\s,]*y\s*=\s*(\d+)[\s,]*(?:rule\s*=(.*?))?[\s,]*$`)
	rleItem   = regexp.MustCompile(`^(\d*)\s*([bo.A$!])\s*`)
	rleRule   = regexp.MustCompile(`^(?i:B3/?S23|S23/?B3|23/3|Life)$`)
)

// ParseRLE reads a pattern in the run-length encoded format in which patterns
// of Conway's Life are exchanged (LifeWiki, "Run Length Encoded"):
//
//	#N Glider                       lines about the pattern
//	#C The smallest spaceship.
//	x = 3, y = 3, rule = B3/S23     header
//	bo$2bo$3o!                      body
//
// A body item is a tag, or a count and a tag: b or . for dead cells, o or A for
// living ones, $ for ends of row. The body ends with !, and what follows is not
// read. Of the lines that start with #, #N is the name; positions among the others
// say nothing on a plane without end. The header may be missing. What is larger
// than it says, has no end or another rule is an error, which names the line.
func ParseRLE(r io.Reader) (*Pattern, error) {
	p := &rleParser{pattern: &Pattern{Rule: conwayRule}, width: math.MaxInt32, height: math.MaxInt32}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		done, err := p.line(strings.TrimSpace(lines.Text()))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if done {
			return p.pattern, nil
		}
	}
	return nil, fmt.Errorf("line %d: %w", n, cmp.Or(lines.Err(), errors.New("the file ends before the pattern does, with '!'")))
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
		if name, ok := strings.CutPrefix(text, "#N"); ok {
			p.pattern.Name = strings.TrimSpace(name)
		}
		return false, nil
	case text[0] == 'x' && !p.inBody:
		p.inBody = true
		return false, p.header(text)
	case text[0] == '!' && !p.inBody: // A plaintext pattern starts so; it must not pass for an empty one.
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

// header reads the header.
func (p *rleParser) header(text string) (err error) {
	h := rleHeader.FindStringSubmatch(text)
	if h == nil {
		return fmt.Errorf("%.80q is no header like x = 3, y = 3, rule = %s", text, conwayRule)
	}
	if rule := strings.Join(strings.Fields(h[3]), ""); strings.Contains(text, "rule") && !rleRule.MatchString(rule) {
		return fmt.Errorf("rule %q is not Conway's (%s)", rule, conwayRule)
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
