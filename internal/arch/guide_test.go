package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/internal/golden"
)

// A block of the guide follows a comment, which selects what the block shows:
//
//	<!-- FILE.go NAME -->        the body of a function, and the output of an Example
//	<!-- FILE.go: NAME, NAME --> whole declarations; a method is TYPE.NAME
//	<!-- FILE.go: import -->     the imports of the file
//	<!-- FILE.go -->             the file without the comment of its package
//	<!-- step 3: NAME, NAME -->  the new lines of declarations of examples/guide/game3
var guideBlock = regexp.MustCompile("(?s)(<!-- (?:step (\\d)|(\\S+\\.go))(: [^\n]+?| \\w+)? -->\n)```go\n(.*?)```\n(\nIt prints:\n\n```text\n.*?```\n)?")

// TestGuide_BlocksEqualSource compares the blocks of the guide with the source that they show. With
// -update, it writes the blocks. In the other pages of docs, it checks only blocks with a comment.
func TestGuide_BlocksEqualSource(t *testing.T) {
	chapters, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil || len(chapters) == 0 {
		t.Fatal(err, len(chapters))
	}
	others, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range slices.Concat(chapters, others) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Count(string(text), "```go\n")
		want := guideBlock.ReplaceAllStringFunc(string(text), func(block string) string {
			blocks--
			part := guideBlock.FindStringSubmatch(block)
			step, file, names := part[2], "../../"+part[3], part[4]
			var shown, output string
			switch list, declared := strings.CutPrefix(names, ": "); {
			case step != "":
				shown = showStep(t, int(step[0]-'0'), strings.Split(list, ", "))
			case list == "import":
				shown = importBlock(t, file)
			case declared:
				shown = showDeclarations(t, file, strings.Split(list, ", "))
			case names == "":
				shown = wholeFile(t, file)
			default:
				shown, output = functionBody(t, file, names[1:])
			}
			block = part[1] + "```go\n" + shown + "```\n"
			if output != "" {
				block += "\nIt prints:\n\n```text\n" + output + "```\n"
			}
			return block
		})
		if blocks != 0 && slices.Contains(chapters, page) {
			t.Errorf("%s: %d blocks of Go code have no source", page, blocks)
		}
		golden.Check(t, page, want)
	}
}

// wholeFile returns the text of a file from its package clause on.
func wholeFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut("\n"+string(text), "\npackage ")
	return "package " + code
}

// importBlock returns the import declaration of a file.
func importBlock(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	declaration := regexp.MustCompile(`(?ms)^import \(\n.*?^\)\n`).Find(text)
	if declaration == nil {
		t.Fatalf("%s has no group of imports", file)
	}
	return string(declaration)
}

// TestGuide_IndexComplete checks that the index of the guide links to each chapter, once.
func TestGuide_IndexComplete(t *testing.T) {
	index := readPage(t, "../../docs/guide/README.md", maxIndex)
	chapters, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil || len(chapters) < 2 {
		t.Fatal(err, len(chapters))
	}
	for _, chapter := range chapters {
		name := filepath.Base(chapter)
		if name == "README.md" {
			continue
		}
		if n := strings.Count(index, "]("+name+"): "); n != 1 {
			t.Errorf("docs/guide/README.md lists %s %d times, want once: - [Title](%s): what it shows.", name, n, name)
		}
	}
}

// functionBody returns the body of a function, and the output of an Example.
func functionBody(t *testing.T, file, name string) (body, output string) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			text := string(source[fset.Position(f.Body.Lbrace).Offset+2 : fset.Position(f.Body.Rbrace).Offset])
			text, output, _ = strings.Cut(text, "\t// Output:\n")
			return unindent(text, "\t"), unindent(output, "\t// ")
		}
	}
	t.Fatalf("%s has no function %s", file, name)
	return "", ""
}

// unindent removes a prefix from all lines that have it.
func unindent(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(line, prefix))
	}
	return b.String()
}

func TestFunctionBody_AndOutputOfExample(t *testing.T) {
	body, output := functionBody(t, "testdata/guide/example.go", "ExampleGreet")
	if body != "for range 2 {\n\tfmt.Println(\"hello\")\n}\n" || output != "hello\nhello\n" {
		t.Errorf("%q prints %q", body, output)
	}
}
