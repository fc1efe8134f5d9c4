package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/term"
)

// An agent reads an answer as a whole, and pays for each word: what a terminal would scroll is cut
// for it. The document stays valid, and of the same shape; what was left out is counted and said,
// with how to ask for it. The document is copied token by token, since order and numbers would not
// survive a map.

// leftOutMember is the member of a document that says what was left out of it.
const leftOutMember = "left_out"

// What an agent is given of a document.
const (
	cutBytes    = 32 << 10  // Behind these, lists end.
	cutElements = 100       // Of a list within another, and members of an object.
	cutText     = 2 << 10   // Characters of a text.
	cutAnswer   = 256 << 10 // What has more bytes all the same is not given at all.
)

// A cutter copies a document, token by token, and leaves out what is too long. Members stay in
// their order, and numbers as they are written.
type cutter struct {
	*json.Decoder
	out    bytes.Buffer
	left   map[string]int // By where.
	where  []string       // In the order in which they were met.
	limits []string       // Sentences of what the document itself says was left out.
}

// cut returns printed, which the command of t printed for args, cut to what an agent can read. Its
// last member says what was left out.
func (t *tool) cut(printed []byte, args []string) (rawDocument, error) {
	c := &cutter{Decoder: json.NewDecoder(bytes.NewReader(printed)), left: map[string]int{}}
	c.UseNumber()
	if err := c.value("", 0); err != nil {
		return nil, err
	}
	c.limited(printed, args)
	if c.out.Len() > cutAnswer {
		return nil, fmt.Errorf("%w: it has %s; %s", errTooLarge, term.Size(int64(c.out.Len())), t.on)
	}
	said := c.limits
	for _, where := range c.where {
		said = append(said, fmt.Sprintf("%d more of %s", c.left[where], where))
	}
	if len(said) == 0 {
		return c.out.Bytes(), nil
	}
	text, err := query.Marshal(append(said, t.on))
	c.out.Truncate(c.out.Len() - 1) // The brace.
	fmt.Fprintf(&c.out, ",%q:%s}", leftOutMember, text)
	return c.out.Bytes(), err
}

// limited notes what the limit of the command left out, as the document says it: by its members total,
// of the last list in it, and earlier.
func (c *cutter) limited(printed []byte, args []string) {
	var doc map[string]json.RawMessage
	if json.Unmarshal(printed, &doc) != nil {
		return
	}
	var earlier, total, offset int
	_ = json.Unmarshal(doc["earlier"], &earlier)
	_ = json.Unmarshal(doc["total"], &total)
	for _, arg := range args {
		if text, ok := strings.CutPrefix(arg, "--offset="); ok {
			offset, _ = strconv.Atoi(text)
		}
	}
	if earlier > 0 {
		c.limits = append(c.limits, fmt.Sprintf("%d before these", earlier))
	}
	for _, list := range []string{"rows", "differences"} {
		var items []json.RawMessage
		if json.Unmarshal(doc[list], &items) == nil && items != nil && total > offset+len(items) {
			c.note(list, total-offset-len(items))
		}
	}
}

// note notes that n things were left out at a place.
func (c *cutter) note(where string, n int) {
	const most = 16
	if _, ok := c.left[where]; !ok {
		if len(c.where) >= most {
			where = "others"
		}
		if _, ok := c.left[where]; !ok {
			c.where = append(c.where, where)
		}
	}
	c.left[where] += n
}

// value copies the next value, which lies at a place so many values deep.
func (c *cutter) value(where string, depth int) error {
	token, err := c.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return c.object(where, depth)
		}
		return c.list(where, depth)
	case string:
		return c.text(where, v)
	case nil:
		c.out.WriteString("null")
	default: // A number or a boolean.
		fmt.Fprint(&c.out, v)
	}
	return nil
}

// list copies the elements of a list. The list of the document has as many as fit.
func (c *cutter) list(where string, depth int) error {
	c.out.WriteByte('[')
	n := 0
	for ; c.More(); n++ {
		if c.out.Len() > cutBytes || depth > 1 && n >= cutElements {
			c.note(where, 1)
			if err := c.skip(); err != nil {
				return err
			}
			continue
		}
		if n > 0 {
			c.out.WriteByte(',')
		}
		if err := c.value(where+"[]", depth+1); err != nil {
			return err
		}
	}
	c.out.WriteByte(']')
	_, err := c.Token()
	return err
}

// object copies the members of an object. Only maps of a world have too many.
func (c *cutter) object(where string, depth int) error {
	c.out.WriteByte('{')
	for n := 0; c.More(); n++ {
		name, err := c.Token()
		if err != nil {
			return err
		}
		if n >= cutElements {
			c.note(where, 1)
			if err := c.skip(); err != nil {
				return err
			}
			continue
		}
		if n > 0 {
			c.out.WriteByte(',')
		}
		text, err := query.Marshal(name)
		if err != nil {
			return err
		}
		c.out.Write(text)
		c.out.WriteByte(':')
		if err := c.value(strings.TrimPrefix(where+"."+name.(string), "."), depth+1); err != nil {
			return err
		}
	}
	c.out.WriteByte('}')
	_, err := c.Token()
	return err
}

// text copies a text, or the beginning of one.
func (c *cutter) text(where, text string) error {
	if runes := []rune(text); len(runes) > cutText {
		c.note("the characters of "+where, len(runes)-cutText)
		text = string(runes[:cutText]) + "…"
	}
	b, err := query.Marshal(text)
	c.out.Write(b)
	return err
}

// skip passes over the next value.
func (c *cutter) skip() error {
	var v json.RawMessage
	return c.Decode(&v)
}
