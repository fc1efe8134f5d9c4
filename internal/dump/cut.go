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

// This file shortens long documents for agents, which pay for each word. The functions value, list,
// object and text copy a printed document token by token. Two functions record what is missing:
//
//   - addLeftOut records what the cutter left out, by path in the document.
//   - addLimits records what the limit of the command left out.
//
// The member left_out at the end of the document says in sentences what is missing, and how to get
// the rest. The result is a valid document of the same shape.

// leftOutMember is the member of a document that lists what was left out.
const leftOutMember = "left_out"

// Maximum sizes in a document for an agent.
const (
	cutBytes = 32 << 10 // No list gets more elements after this many bytes of output.
	// Largest number of elements of a nested list, and of members of an object.
	cutElements = 100
	cutText     = 2 << 10   // Longest text, in characters.
	cutAnswer   = 256 << 10 // A result with more bytes is refused.
)

// A cutter copies a document token by token and leaves out what is too long. It preserves the order
// of members and the digits of numbers. It counts omitted elements by path, such as
// rows[].values.Bag.
type cutter struct {
	*json.Decoder
	out   bytes.Buffer
	left  map[string]int // Number of elements left out, by path.
	where []string       // Keys of left, in the order in which they were added.
	// Sentences about what the command left out because of its limit.
	limits []string
}

// cut shortens a document that the command of t printed, with the arguments args. The last member
// of the result lists what was left out. If the result is still too large, cut returns an error.
func (t *tool) cut(printed []byte, args []string) (rawDocument, error) {
	c := &cutter{Decoder: json.NewDecoder(bytes.NewReader(printed)), left: map[string]int{}}
	c.UseNumber()
	if err := c.value("", 0); err != nil {
		return nil, err
	}
	c.addLimits(printed, args)
	if c.out.Len() > cutAnswer {
		return nil, fmt.Errorf("%w: it has %s; %s", errTooLarge, term.Size(int64(c.out.Len())), t.advice)
	}
	said := c.limits
	for _, where := range c.where {
		said = append(said, fmt.Sprintf("%d more of %s", c.left[where], where))
	}
	if len(said) == 0 {
		return c.out.Bytes(), nil
	}
	text, err := query.Marshal(append(said, t.advice))
	c.out.Truncate(c.out.Len() - 1) // Remove the closing brace.
	fmt.Fprintf(&c.out, ",%q:%s}", leftOutMember, text)
	return c.out.Bytes(), err
}

// addLimits records what the limit of the command left out. The document says so in these members:
//
//	earlier   number of items before the list
//	total     number of all rows or differences; those before --offset are not reported
//	more      true if an unknown number of items follow the list
func (c *cutter) addLimits(printed []byte, args []string) {
	var doc struct {
		Earlier, Total    int
		More              bool
		Rows, Differences []json.RawMessage
	}
	// Ignore errors: a document may have a member of the same name and of another type.
	_ = json.Unmarshal(printed, &doc)
	if doc.More {
		c.limits = append(c.limits, "more rows")
	}
	offset := 0
	for _, arg := range args {
		if text, ok := strings.CutPrefix(arg, "--offset="); ok {
			offset, _ = strconv.Atoi(text)
		}
	}
	if doc.Earlier > 0 {
		c.limits = append(c.limits, fmt.Sprintf("%d before these", doc.Earlier))
	}
	if n := doc.Total - offset - len(doc.Rows); doc.Rows != nil && n > 0 {
		c.addLeftOut("rows", n)
	}
	if n := doc.Total - offset - len(doc.Differences); doc.Differences != nil && n > 0 {
		c.addLeftOut("differences", n)
	}
}

// addLeftOut records that n elements were left out at a path. It counts the first 16 paths
// separately, and all later ones as "others".
func (c *cutter) addLeftOut(where string, n int) {
	const most = 16
	if c.left[where] == 0 && len(c.where) >= most {
		where = "others"
	}
	if c.left[where] == 0 {
		c.where = append(c.where, where)
	}
	c.left[where] += n
}

// value copies the next value, which has the given path. The depth is 0 for the document, 1 for its
// members, and more for the values inside them.
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

// list copies the elements of a list, until the output has cutBytes. A nested list also ends after
// cutElements.
func (c *cutter) list(where string, depth int) error {
	c.out.WriteByte('[')
	n := 0
	for ; c.More(); n++ {
		if c.out.Len() > cutBytes || depth > 1 && n >= cutElements {
			if err := c.skip(where); err != nil {
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

// object copies the members of an object, at most cutElements.
func (c *cutter) object(where string, depth int) error {
	c.out.WriteByte('{')
	for n := 0; c.More(); n++ {
		name, err := c.Token()
		if err != nil {
			return err
		}
		if n >= cutElements {
			if err := c.skip(where); err != nil {
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

// text copies a text, cut to cutText characters.
func (c *cutter) text(where, text string) error {
	if runes := []rune(text); len(runes) > cutText {
		c.addLeftOut("the characters of "+where, len(runes)-cutText)
		text = string(runes[:cutText]) + "…"
	}
	b, err := query.Marshal(text)
	c.out.Write(b)
	return err
}

// skip reads the next value without copying it.
func (c *cutter) skip(where string) error {
	c.addLeftOut(where, 1)
	var v json.RawMessage
	return c.Decode(&v)
}
