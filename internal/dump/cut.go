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
// for it.
//
//	document, as printed ──▶ value, list, object, text: copied, token by token
//	                     ──▶ note: what was passed over, by where it stood
//	                     ──▶ limited: what the limit of the command had left out before
//	                     ──▶ a last member, left_out: sentences, and how to ask on
//
// The document stays valid, and of the same shape. It is copied token by token, since order and
// numbers would not survive a map.

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
//
// Where is a path without numbers, as rows[].values.Bag, so that the same member of all elements is
// counted once.
type cutter struct {
	*json.Decoder
	out    bytes.Buffer
	left   map[string]int // By where.
	where  []string       // In the order in which they were met.
	limits []string       // Sentences of what the document itself says was left out.
}

// cut returns printed, which the command of t printed for args, cut to what an agent can read. Its
// last member says what was left out. What is still too large has no lists that could be cut
// further, and is not given.
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

// limited notes what the limit of the command left out, by what the document says itself: earlier
// is how many things come before a list, and total how many there are of rows or differences, of
// which the offset was passed and some are here. Where nobody knows how many, more says that there are some.
// A document without these members says nothing, and so does this.
func (c *cutter) limited(printed []byte, args []string) {
	var doc map[string]json.RawMessage
	if json.Unmarshal(printed, &doc) != nil {
		return
	}
	var earlier, total, offset int
	_ = json.Unmarshal(doc["earlier"], &earlier)
	_ = json.Unmarshal(doc["total"], &total)
	if string(doc["more"]) == "true" {
		c.limits = append(c.limits, "more rows")
	}
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

// note notes that n things were left out at a place. Most places of their own are told; all that
// are met later are "others".
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

// value copies the next value, which lies at a place so many values deep. Depth 0 is the document,
// 1 its members, 2 and more what lies in them.
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

// list copies the elements of a list. The list of the document has as many as fit. Once cutBytes
// are out, no list gets another element, but members of objects still follow: the shape stays.
// Lists that lie deeper end after cutElements as well, so that one long value does not take all of
// the room.
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

// skip passes over the next value. It reads it whole, however long it is; it was printed to memory
// already.
func (c *cutter) skip() error {
	var v json.RawMessage
	return c.Decode(&v)
}
