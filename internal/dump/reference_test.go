package dump

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/golden"
)

const (
	reference   = "../../docs/ECSDUMP.md"
	membersList = "testdata/members.txt"
	generated   = "<!-- Everything below is written by go test ./internal/dump -run Reference -update. -->\n"
)

// A docType is a document type as declared in the source files.
type docType struct {
	name    string // Without the suffix Doc.
	comment string
	members []docMember
}

// A docMember is a member of a document, or an embedded document.
type docMember struct {
	name, kind, comment string
	optional            bool
	of                  string // The document type of the value or its elements, or "".
	// True for an embedded struct, whose members are members of the outer document.
	embedded bool
	inline   *ast.Field // The field, if its type is an unnamed struct.
}

// isDocument reports whether a command prints d as a whole. The comment of such a type contains
// "--json".
func (d *docType) isDocument() bool { return strings.Contains(d.comment, "--json") }

// docTypes returns the document types of the program, by name.
func docTypes(t *testing.T) map[string]*docType {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	shared, err := filepath.Glob("../describe/*.go")
	require.NoError(t, err)
	files = append(files, shared...)
	types := map[string]*docType{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range f.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				continue
			}
			for _, spec := range d.Specs {
				s := spec.(*ast.TypeSpec)
				name, isDoc := strings.CutSuffix(s.Name.Name, docSuffix)
				if st, ok := s.Type.(*ast.StructType); ok && isDoc {
					comment := cmp.Or(s.Doc, d.Doc)
					require.NotNil(t, comment, "%s has no comment", s.Name.Name)
					// The document types of package describe are exported.
					name = strings.ToLower(name[:1]) + name[1:]
					types[name] = &docType{name, oneLine(strings.Replace(comment.Text(), s.Name.Name, name+docSuffix, 1)), docMembers(st)}
				}
			}
		}
	}
	return types
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func docMembers(st *ast.StructType) (members []docMember) {
	for _, f := range st.Fields.List {
		m := docMember{kind: kindOf(f.Type), of: docNameIn(f.Type)}
		m.comment = oneLine(cmp.Or(f.Comment, f.Doc).Text())
		if f.Tag != nil {
			tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
			name, options, _ := strings.Cut(tag, ",")
			m.name, m.optional = name, strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		}
		if _, ok := f.Type.(*ast.StructType); ok {
			m.inline = f
		}
		m.embedded = len(f.Names) == 0 && m.name == ""
		if m.name != "-" && (m.name != "" || m.embedded) {
			members = append(members, m)
		}
	}
	return members
}

// kindOf returns the JSON type of a Go type.
func kindOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return kindOf(e.X)
	case *ast.ArrayType:
		if id, ok := e.Elt.(*ast.Ident); ok && id.Name == "byte" {
			return "bytes in base64"
		}
		return "list of " + kindOf(e.Elt)
	case *ast.MapType:
		return "object of " + kindOf(e.Value)
	case *ast.StructType:
		return "object"
	case *ast.SelectorExpr:
		return map[string]string{"Time": "time", "Value": "value"}[e.Sel.Name]
	case *ast.Ident:
		if name, ok := strings.CutSuffix(e.Name, docSuffix); ok {
			return name
		}
		kinds := map[string]string{"string": "string", "bool": "boolean", "any": "value", "float64": "number"}
		if kind, ok := kinds[e.Name]; ok {
			return kind
		}
		if strings.Contains(e.Name, "int") {
			return "number"
		}
	}
	var b bytes.Buffer
	_ = printer.Fprint(&b, token.NewFileSet(), e)
	return b.String()
}

// docNameIn returns the name of the document type in e, or "".
func docNameIn(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return docNameIn(e.X)
	case *ast.ArrayType:
		return docNameIn(e.Elt)
	case *ast.MapType:
		return docNameIn(e.Value)
	case *ast.Ident:
		if name, ok := strings.CutSuffix(e.Name, docSuffix); ok {
			return name
		}
	}
	return ""
}

// paths appends a line for each member and each nested member to lines. A line has the format of
// the document, the path of the member, and its JSON type.
func paths(types map[string]*docType, format, path string, members []docMember, lines *[]string) {
	if strings.Count(path, ".") > 8 {
		return
	}
	for _, m := range members {
		inside := path
		if !m.embedded {
			kind := m.kind
			if m.of != "" {
				kind = strings.Replace(kind, m.of, "object", 1)
			}
			*lines = append(*lines, fmt.Sprintf("%s%s.%s %s", format, path, m.name, kind))
			inside += "." + m.name
		}
		if m.inline != nil {
			paths(types, format, inside, docMembers(m.inline.Type.(*ast.StructType)), lines)
		} else if of := types[m.of]; of != nil {
			paths(types, format, inside, of.members, lines)
		}
	}
}

// TestReference_KeepsDocumentMembers compares the members of all documents with the recorded ones.
// No recorded member may be missing. With -update, it records new members.
func TestReference_KeepsDocumentMembers(t *testing.T) {
	types := docTypes(t)
	var lines []string
	for name, d := range types {
		if d.isDocument() {
			paths(types, formatOf(name), "", d.members, &lines)
			if list, ok := d.list(types); ok {
				lines = append(lines, fmt.Sprintf("%s lines of %s", formatOf(name), list))
			}
		}
	}
	slices.Sort(lines)
	before, err := os.ReadFile(membersList)
	require.NoError(t, err)
	for line := range strings.Lines(string(before)) {
		line = strings.TrimSuffix(line, "\n")
		format := line[:strings.IndexAny(line, "/")+2]
		name := strings.TrimPrefix(line[:strings.IndexByte(line, '/')], "ecsdump.")
		if strings.HasPrefix(line, formatOf(name)) {
			require.Contains(t, lines, line, "%s promised this; raise its number in formatOf", format)
		}
	}
	text := strings.Join(lines, "\n") + "\n"
	golden.Check(t, membersList, text)
}

// list returns the name of the only member of d that is a list of documents. Members of embedded
// structs count. For the value of a document, listOf does the same.
func (d *docType) list(types map[string]*docType) (name string, ok bool) {
	var lists []string
	var find func(members []docMember)
	find = func(members []docMember) {
		for _, m := range members {
			if of := types[m.of]; m.embedded && of != nil {
				find(of.members)
			} else if m.of != "" && strings.HasPrefix(m.kind, "list of ") {
				lists = append(lists, m.name)
			}
		}
	}
	if find(d.members); len(lists) != 1 {
		return "", false
	}
	return lists[0], true
}

// TestReference_UpToDate compares docs/ECSDUMP.md with the program.
func TestReference_UpToDate(t *testing.T) {
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	top, _, ok := strings.Cut(string(text), generated)
	require.True(t, ok, "%s has no line %s", reference, generated)
	want := top + generated + topicsReference() + commandsReference() + documentsReference(t)
	golden.Check(t, reference, want)
}

// preformatted returns text indented as a Markdown code block.
func preformatted(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if strings.TrimSpace(line) != "" {
			b.WriteString("    ")
		}
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

func topicsReference() string {
	var b strings.Builder
	for _, t := range topics {
		fmt.Fprintf(&b, "\n## %s\n\n%s", t.title, preformatted(t.text))
	}
	return b.String()
}

func commandsReference() string {
	var b strings.Builder
	root := new(app).root(commands)
	b.WriteString("\n## Commands\n")
	for _, c := range documentedCommands(root) {
		fmt.Fprintf(&b, "\n### %s\n\n%s", c.Name(), preformatted(helpOf(c)))
	}
	fmt.Fprintf(&b, "\n### Every command\n\n%s", preformatted(root.PersistentFlags().FlagUsages()))
	return b.String()
}

// helpOf returns the help text of c without the global flags.
func helpOf(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", c.UseLine(), strings.TrimSpace(cmp.Or(c.Long, c.Short)))
	if c.HasLocalFlags() {
		fmt.Fprintf(&b, "\n%s", c.LocalNonPersistentFlags().FlagUsages())
	}
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	return b.String()
}

func documentsReference(t *testing.T) string {
	types := docTypes(t)
	var names, parts []string
	reached := map[string]bool{}
	for name, d := range types {
		if d.isDocument() {
			names = append(names, name)
			reach(types, d.members, reached)
		}
	}
	for name, d := range types {
		if !d.isDocument() {
			require.True(t, reached[name], "%sDoc is in no document; does its comment, or that of the document, say --json?", name)
			parts = append(parts, name)
		}
	}
	slices.Sort(names)
	slices.Sort(parts)
	var b strings.Builder
	b.WriteString("\n## Documents\n\nOptional members may be missing. The member in bold is a list: with `--ndjson`, each of\nits elements is a line.\n")
	for _, name := range names {
		fmt.Fprintf(&b, "\n### %s\n\n", formatOf(name))
		types[name].write(&b, types)
	}
	b.WriteString("\n## Parts of documents\n")
	for _, name := range parts {
		fmt.Fprintf(&b, "\n### %s\n\n", name)
		types[name].write(&b, types)
	}
	return b.String()
}

func reach(types map[string]*docType, members []docMember, reached map[string]bool) {
	for _, m := range members {
		if of := types[m.of]; of != nil && !reached[m.of] {
			reached[m.of] = true
			reach(types, of.members, reached)
		}
	}
}

// docLink matches a link to a document type in a comment.
var docLink = regexp.MustCompile(`\[[a-z][A-Za-z]*Doc\]`)

// write writes d as a table.
func (d *docType) write(b *strings.Builder, types map[string]*docType) {
	comment := strings.Replace(d.comment, d.name+docSuffix, "This", 1)
	for _, article := range []string{"A This", "An This", "The This"} {
		comment = strings.Replace(comment, article, "This", 1)
	}
	list, hasList := d.list(types)
	hasList = hasList && d.isDocument()
	comment = docLink.ReplaceAllStringFunc(comment, func(link string) string {
		name := strings.TrimSuffix(link[1:], docSuffix+"]")
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	})
	fmt.Fprintf(b, "%s\n", comment)
	if len(d.members) == 0 {
		return // The type has its own MarshalJSON, so its comment describes the members.
	}
	b.WriteString("\n| member | is | |\n|---|---|---|\n")
	var rows func(members []docMember, prefix string)
	rows = func(members []docMember, prefix string) {
		for _, m := range members {
			name, kind := prefix+m.name, m.kind
			if m.of != "" {
				kind = strings.Replace(kind, m.of, fmt.Sprintf("[%s](#%s)", m.of, strings.ToLower(m.of)), 1)
			}
			if m.embedded {
				name, kind = "…", "the members of "+kind
			}
			if hasList && name == list {
				name = "**" + name + "**"
			}
			if m.optional {
				kind += ", optional"
			}
			fmt.Fprintf(b, "| %s | %s | %s |\n", name, kind, strings.ReplaceAll(m.comment, "|", "\\|"))
			if m.inline != nil {
				rows(docMembers(m.inline.Type.(*ast.StructType)), m.name+".")
			}
		}
	}
	rows(d.members, "")
}
