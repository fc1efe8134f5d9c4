package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// conwayRule is the rule of every [Pattern]: birth on 3 neighbours, survival on
// 2 or 3.
const conwayRule = "B3/S23"

// maxCells bounds the living cells of one pattern: 128 MiB of them.
const maxCells = 1 << 24

// A Cell is a position on the plane. X grows to the right, Y grows downwards.
type Cell struct{ X, Y int32 }

// A Pattern is what a pattern file says.
type Pattern struct {
	Name     string
	Comments []string // One per line, authors included.
	Width    int      // In cells, as the header has it.
	Height   int      // In cells, as the header has it.
	Rule     string   // Always "B3/S23", however the file wrote it.
	Cells    []Cell   // The living ones, by row and then by column, none twice.
}

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
// read. White space may stand between items and between a count and its tag,
// not inside a count. Lines may be of any length and end with LF, CR or CR LF.
//
// Lines that start with # may stand before the header and between lines of the
// body: #N is the name, #C, #c, #D and #O (the author) are comments, #r is the
// rule, #P, #R and Golly's "#CXRLE Pos=" are the position of the upper left
// corner, by which all cells are shifted; the last one counts. Others are
// ignored.
//
// Programs differ on what they accept beyond that. ParseRLE does so only where
// no living cell could end up elsewhere or get lost:
//
//   - A missing header is accepted; the body then sets width and height, and the
//     rule is Conway's.
//   - A missing ! is an error. The file may have been cut short.
//   - Rows longer than x and more rows than y are errors, even if the cells there
//     are dead. Ends of row after the last row are accepted up to y.
//   - Other rules, bounded grids included, are errors, and so are the tags of
//     rules with more states.
//
// A file that is not a pattern gives a [*SyntaxError]; an error of r is wrapped.
// A pattern has at most 1<<24 living cells, and memory grows with those and with
// the text of the file, not with what its counts promise.
func ParseRLE(r io.Reader) (*Pattern, error) { return parseRLE(r, maxCells) }

// parseRLE is [ParseRLE] for at most limit living cells.
func parseRLE(r io.Reader, limit int) (*Pattern, error) {
	p := &rleParser{
		scanner: newScanner(r),
		pattern: &Pattern{Rule: conwayRule},
		limit:   limit,
	}
	err := p.parse()
	if p.err != nil { // To the parser this looked like the end of the file.
		return nil, fmt.Errorf("read pattern: %w", p.err)
	}
	if err != nil {
		return nil, err
	}
	return p.pattern, nil
}

// An rleParser fills a pattern. The cells stay relative to the upper left corner
// until the whole file is read.
type rleParser struct {
	*scanner
	pattern *Pattern
	limit   int // How many cells the pattern may have.

	corner   Cell  // Where the upper left corner goes.
	cornerAt place // Where the file says so.

	column, row int // Of the next cell.
}

func (p *rleParser) parse() error {
	hasHeader, err := p.head()
	if err != nil {
		return err
	}
	if !hasHeader {
		p.pattern.Width, p.pattern.Height = math.MaxInt32, math.MaxInt32
	}
	right, bottom, err := p.body()
	if err != nil {
		return err
	}
	if !hasHeader {
		p.pattern.Width, p.pattern.Height = right, bottom
	}
	return p.shift()
}

// head reads what stands before the body, and reports whether the header was
// there.
func (p *rleParser) head() (hasHeader bool, err error) {
	for {
		p.skipSpace()
		b, ok := p.peek()
		switch {
		case !ok:
			return false, p.at.errorf("file ends before the pattern")
		case b == '#':
			if err := p.hashLine(); err != nil {
				return false, err
			}
		case b == 'x': // As a tag, x is an error: nothing is lost.
			return true, p.header()
		case b == '!':
			// A plaintext pattern starts so; it must not pass for an empty one.
			return false, p.at.errorf("neither header nor cells before '!'")
		default:
			return false, nil
		}
	}
}

// hashLine reads a line that starts with '#'.
func (p *rleParser) hashLine() error {
	at := p.at
	text, err := p.text()
	if err != nil || len(text) < 2 {
		return err
	}
	if fields := strings.Fields(text); fields[0] == "#CXRLE" {
		return p.extendedLine(at, fields[1:])
	}
	value := strings.TrimSpace(text[2:])
	switch text[1] {
	case 'N':
		p.pattern.Name = value
	case 'C', 'c', 'D', 'O':
		p.pattern.Comments = append(p.pattern.Comments, value)
	case 'P', 'R':
		return p.setCorner(at, value)
	case 'r':
		return checkRule(at, value)
	}
	return nil
}

// extendedLine reads the settings of a #CXRLE line. The position matters here,
// the generation does not.
func (p *rleParser) extendedLine(at place, settings []string) error {
	for _, setting := range settings {
		if value, ok := strings.CutPrefix(setting, "Pos="); ok {
			return p.setCorner(at, value)
		}
	}
	return nil
}

// setCorner takes two integers, separated by white space or a comma, as the
// position of the upper left corner.
func (p *rleParser) setCorner(at place, value string) error {
	fields := strings.FieldsFunc(value, func(r rune) bool {
		return r == ' ' || r == '\t' || r == ','
	})
	if len(fields) != 2 {
		return at.errorf("position %q is not two integers", value)
	}
	x, errX := strconv.ParseInt(fields[0], 10, 32)
	y, errY := strconv.ParseInt(fields[1], 10, 32)
	if errX != nil || errY != nil {
		return at.errorf("position %q is not two integers of 32 bits", value)
	}
	p.corner, p.cornerAt = Cell{X: int32(x), Y: int32(y)}, at
	return nil
}

// header reads the header line.
func (p *rleParser) header() error {
	start := p.at
	text, err := p.text()
	if err != nil {
		return err
	}
	h := &headerLine{start: start, text: text}
	if p.pattern.Width, err = h.length("x"); err != nil {
		return err
	}
	if p.pattern.Height, err = h.length("y"); err != nil {
		return err
	}
	return h.checkRule()
}

// A headerLine takes the header apart from left to right.
type headerLine struct {
	start place
	text  string
	used  int // How many bytes of text have been taken.
}

// at returns the place of the first byte not taken.
func (h *headerLine) at() place { return place{line: h.start.line, column: h.start.column + h.used} }

// rest returns what has not been taken.
func (h *headerLine) rest() string { return h.text[h.used:] }

// skipSpace takes white space.
func (h *headerLine) skipSpace() {
	h.used = len(h.text) - len(strings.TrimLeft(h.rest(), " \t"))
}

// take takes word and the white space after it, and reports whether it was
// there.
func (h *headerLine) take(word string) bool {
	if !strings.HasPrefix(h.rest(), word) {
		return false
	}
	h.used += len(word)
	h.skipSpace()
	return true
}

// length takes "key = n" and the comma after it. Where another key follows, the
// comma may be missing.
func (h *headerLine) length(key string) (int, error) {
	if !h.take(key) || !h.take("=") {
		return 0, h.at().errorf("header wants %q here", key+" = ")
	}
	digits := h.rest()
	if end := strings.IndexAny(digits, " \t,"); end >= 0 {
		digits = digits[:end]
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0, h.at().errorf("%s = %q is not a length from 0 to %d", key, digits, math.MaxInt32)
	}
	h.used += len(digits)
	h.skipSpace()
	h.take(",")
	return int(n), nil
}

// checkRule takes the rest of the header: "rule = " and the rule, or nothing.
func (h *headerLine) checkRule() error {
	if h.rest() == "" {
		return nil
	}
	if !h.take("rule") || !h.take("=") {
		return h.at().errorf("header wants \"rule = \" or its end here")
	}
	return checkRule(h.at(), strings.TrimRight(h.rest(), " \t,"))
}

// checkRule returns an error unless rule is Conway's. Before birth came first
// and had a letter, survival came first and had none.
func checkRule(at place, rule string) error {
	switch strings.ToUpper(strings.Join(strings.Fields(rule), "")) {
	case "B3/S23", "S23/B3", "B3S23", "S23B3", "23/3", "LIFE":
		return nil
	}
	return at.errorf("rule %q is not Conway's (%s)", rule, conwayRule)
}

// body reads items up to '!'. It returns the first column and row past all of
// them.
func (p *rleParser) body() (right, bottom int, err error) {
	for {
		p.skipSpace()
		if b, _ := p.peek(); b == '#' && p.blank {
			if err := p.hashLine(); err != nil {
				return 0, 0, err
			}
			continue
		}
		done, err := p.item()
		if done || err != nil {
			return right, bottom, err
		}
		if p.column > 0 {
			right, bottom = max(right, p.column), p.row+1
		}
	}
}

// item reads a tag, or a count and a tag, and reports whether that was '!'.
func (p *rleParser) item() (done bool, err error) {
	at := p.at
	count, counted, err := p.count()
	if err != nil {
		return false, err
	}
	p.skipSpace()
	tagAt := p.at
	tag, ok := p.next()
	if !ok {
		return false, tagAt.errorf("body ends without '!'")
	}
	switch tag {
	case 'b', '.':
		return false, p.run(at, count)
	case 'o', 'A':
		return false, p.live(at, count)
	case '$':
		return false, p.endRows(at, count)
	case '!':
		if counted {
			return false, at.errorf("count %d has no tag", count)
		}
		return true, nil
	}
	return false, tagAt.errorf("%s", tagFault(tag))
}

// count reads the count of an item. It is 1, and not counted, where the tag
// stands alone.
func (p *rleParser) count() (n int, counted bool, err error) {
	at := p.at
	for {
		b, ok := p.peek()
		if !ok || !isDigit(b) {
			break
		}
		p.next()
		counted = true
		digit := int(b - '0')
		if n > (math.MaxInt32-digit)/10 {
			return 0, true, at.errorf("count is larger than %d", math.MaxInt32)
		}
		n = n*10 + digit
	}
	if !counted {
		return 1, false, nil
	}
	if n == 0 {
		return 0, true, at.errorf("count is zero")
	}
	return n, true, nil
}

// tagFault says why tag cannot stand where a tag has to.
func tagFault(tag byte) string {
	switch {
	case isDigit(tag):
		return "count is split by white space"
	case 'B' <= tag && tag <= 'X':
		return fmt.Sprintf("tag '%c' is state %d of a rule with more than two", tag, tag-'A'+1)
	case 'x' <= tag && tag <= 'z':
		return fmt.Sprintf("tag '%c' is a marked cell, which Conway's rule does not have", tag)
	case ' ' < tag && tag <= '~':
		return fmt.Sprintf("unknown tag '%c'", tag)
	}
	return fmt.Sprintf("unknown tag 0x%02x", tag)
}

// run moves past n cells of the current row.
func (p *rleParser) run(at place, n int) error {
	if p.row == p.pattern.Height {
		return at.errorf("more rows than y = %d", p.pattern.Height)
	}
	if n > p.pattern.Width-p.column {
		return at.errorf("row %d is longer than x = %d", p.row+1, p.pattern.Width)
	}
	p.column += n
	return nil
}

// live adds n living cells to the current row.
func (p *rleParser) live(at place, n int) error {
	first := p.column
	if err := p.run(at, n); err != nil {
		return err
	}
	if n > p.limit-len(p.pattern.Cells) {
		return at.errorf("more than %d living cells", p.limit)
	}
	cells := slices.Grow(p.pattern.Cells, n)
	for x := first; x < p.column; x++ {
		cells = append(cells, Cell{X: int32(x), Y: int32(p.row)})
	}
	p.pattern.Cells = cells
	return nil
}

// endRows ends the current row, and n-1 empty ones after it.
func (p *rleParser) endRows(at place, n int) error {
	if n > p.pattern.Height-p.row {
		return at.errorf("more rows than y = %d", p.pattern.Height)
	}
	p.row += n
	p.column = 0
	return nil
}

// shift moves the cells to where the upper left corner goes.
func (p *rleParser) shift() error {
	for i, cell := range p.pattern.Cells {
		x, y := int64(p.corner.X)+int64(cell.X), int64(p.corner.Y)+int64(cell.Y)
		if x > math.MaxInt32 || y > math.MaxInt32 {
			return p.cornerAt.errorf("position puts a cell at (%d, %d), outside 32 bits", x, y)
		}
		p.pattern.Cells[i] = Cell{X: int32(x), Y: int32(y)}
	}
	return nil
}
