package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The chapter of the game, and the number of its steps.
const (
	gameChapter = "../../docs/guide/GAME.md"
	gameSteps   = 9
)

func stepFile(step int) string { return fmt.Sprintf("../../examples/guide/game%d/main.go", step) }

// TestGuide_StepsShowChanges checks that the chapter of the game shows what differs from step to
// step. A comment may list declarations that the chapter does not show:
//
//	<!-- not shown in step 4: game.draw, main -->
func TestGuide_StepsShowChanges(t *testing.T) {
	text, err := os.ReadFile(gameChapter)
	if err != nil {
		t.Fatal(err)
	}
	shown, hidden := map[stepName]bool{}, map[stepName]bool{}
	for _, part := range guideBlock.FindAllStringSubmatch(string(text), -1) {
		for _, name := range strings.Split(strings.TrimPrefix(part[4], ": "), ", ") {
			if part[2] != "" {
				step := int(part[2][0] - '0')
				shown[stepName{step, groupOf(t, stepFile(step), name)}] = true
			}
		}
	}
	for _, part := range regexp.MustCompile(`<!-- not shown in step (\d): ([^\n]+) -->`).FindAllStringSubmatch(string(text), -1) {
		for _, name := range strings.Split(part[2], ", ") {
			hidden[stepName{int(part[1][0] - '0'), name}] = true
		}
	}
	before := map[string]string{}
	for step := 1; step <= gameSteps; step++ {
		now := declTexts(t, stepFile(step))
		all := maps.Clone(before)
		maps.Copy(all, now)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			what := stepName{step, name}
			switch differs := squeeze(now[name]) != squeeze(before[name]); {
			case differs && !shown[what] && !hidden[what]:
				t.Errorf("step %d: %s differs from the step before: show it, or write <!-- not shown in step %d: %s -->", step, name, step, name)
			case hidden[what] && (shown[what] || !differs):
				t.Errorf("step %d: a comment says that %s is not shown, but it is, or it has not changed", step, name)
			}
			delete(hidden, what)
		}
		before = now
	}
	for what := range hidden {
		t.Errorf("step %d: a comment names %s, which does not exist", what.step, what.name)
	}
}

// A stepName is a declaration of a step.
type stepName struct {
	step int
	name string
}

// declTexts maps the first name of each declaration of a file to the text of the declaration. It
// leaves out imports.
func declTexts(t *testing.T, file string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, d := range declared(t, file) {
		all[d.names[0]] = d.text
	}
	return all
}

// groupOf finds the declaration of a name, and returns the first name that it declares. A group of
// types declares several names.
func groupOf(t *testing.T, file, name string) string {
	t.Helper()
	for _, d := range declared(t, file) {
		if slices.Contains(d.names, name) {
			return d.names[0]
		}
	}
	t.Fatalf("%s does not declare %s", file, name)
	return ""
}

// A declText is a function, or a group of types, variables or constants.
type declText struct {
	names []string
	text  string // The text with its comment.
}

// declared returns the declarations of a file, without imports.
func declared(t *testing.T, file string) (all []declText) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range parsed.Decls {
		var d declText
		from := decl.Pos()
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			d.names = []string{decl.Name.Name}
			if decl.Recv != nil {
				d.names[0] = receiver(decl.Recv.List[0].Type) + "." + d.names[0]
			}
			if decl.Doc != nil {
				from = decl.Doc.Pos()
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					d.names = append(d.names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						d.names = append(d.names, name.Name)
					}
				}
			}
			if decl.Doc != nil {
				from = decl.Doc.Pos()
			}
		}
		if len(d.names) > 0 {
			text := string(source[fset.Position(from).Offset:])
			end := fset.Position(decl.End()).Offset - fset.Position(from).Offset
			end += strings.IndexByte(text[end:], '\n') // A comment may follow.
			d.text = text[:end+1]
			all = append(all, d)
		}
	}
	return all
}

// showDeclarations returns the text of declarations, separated by empty lines.
func showDeclarations(t *testing.T, file string, names []string) string {
	t.Helper()
	texts, all := []string{}, declTexts(t, file)
	for _, name := range names {
		texts = append(texts, all[groupOf(t, file, name)])
	}
	return strings.Join(texts, "\n")
}

// showStep returns the lines of declarations that are new or changed since the step before.
func showStep(t *testing.T, step int, names []string) string {
	t.Helper()
	texts, now, before := []string{}, declTexts(t, stepFile(step)), map[string]string{}
	if step > 1 {
		before = declTexts(t, stepFile(step-1))
	}
	for _, name := range names {
		group := groupOf(t, stepFile(step), name)
		texts = append(texts, showChanges(before[group], now[group]))
	}
	return strings.Join(texts, "\n")
}

// squeeze returns a text with all spaces made equal, because gofmt aligns columns.
func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

// ellipsis stands for lines that are left out.
const ellipsis = "// …"

// showChanges returns the lines of a declaration that are new. Around them, it shows the first and
// last line of each block. It replaces all other lines by an ellipsis. If before is "", it returns
// all lines.
func showChanges(before, now string) string {
	if before == "" {
		return now
	}
	old, lines := strings.Split(before, "\n"), strings.Split(strings.TrimSuffix(now, "\n"), "\n")
	keep := make([]bool, len(lines))
	common := commonLines(old, lines)
	for i := range lines {
		if !common[i] && strings.TrimSpace(lines[i]) != "" {
			keepBlock(lines, keep, i)
		}
	}
	var b strings.Builder
	for i := 0; i < len(lines); i++ {
		if keep[i] {
			b.WriteString(lines[i] + "\n")
			continue
		}
		from := i
		for i+1 < len(lines) && !keep[i+1] {
			i++
		}
		switch first := lines[from]; {
		case from == 0 && strings.HasPrefix(first, "//"): // The comment of the declaration.
		case from == i && strings.TrimSpace(first) != "":
			b.WriteString(first + "\n") // The ellipsis would not be shorter.
		default:
			b.WriteString(indentation(lines[from:i+1]) + ellipsis + "\n")
		}
	}
	return b.String()
}

// keepBlock keeps line i, and the first and last line of each block that contains it. If a block
// begins in line i, it also keeps the last line of that block.
func keepBlock(lines []string, keep []bool, i int) {
	keep[i] = true
	if strings.HasSuffix(lines[i], "{") || strings.HasSuffix(lines[i], "(") {
		keepEnd(lines, keep, i, indent(lines[i])+1)
	}
	for depth := indent(lines[i]); depth > 0; depth-- {
		for k := i; k >= 0; k-- {
			if lines[k] != "" && indent(lines[k]) < depth {
				keep[k] = true
				break
			}
		}
		keepEnd(lines, keep, i, depth)
	}
}

// keepEnd keeps the line that ends a block. It is the first line after i with fewer than depth
// tabs, if this line begins with a closing brace or parenthesis.
func keepEnd(lines []string, keep []bool, i, depth int) {
	for k := i + 1; k < len(lines); k++ {
		if lines[k] != "" && indent(lines[k]) < depth {
			keep[k] = keep[k] || strings.ContainsAny(strings.TrimSpace(lines[k])[:1], "})")
			return
		}
	}
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, "\t")) }

// indentation returns the tabs before the first line that is not empty.
func indentation(lines []string) string {
	for _, line := range lines {
		if line != "" {
			return strings.Repeat("\t", indent(line))
		}
	}
	return ""
}

// commonLines reports which lines of now are in a longest common subsequence of both texts.
func commonLines(before, now []string) []bool {
	longest := make([][]int, len(before)+1)
	for i := range longest {
		longest[i] = make([]int, len(now)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for k := len(now) - 1; k >= 0; k-- {
			if longest[i][k] = max(longest[i+1][k], longest[i][k+1]); squeeze(before[i]) == squeeze(now[k]) {
				longest[i][k] = longest[i+1][k+1] + 1
			}
		}
	}
	common := make([]bool, len(now))
	for i, k := 0, 0; i < len(before) && k < len(now); {
		switch {
		case squeeze(before[i]) == squeeze(now[k]):
			common[k] = true
			i, k = i+1, k+1
		case cmp.Less(longest[i][k+1], longest[i+1][k]):
			i++
		default:
			k++
		}
	}
	return common
}

func TestShowChanges_Ellipsis(t *testing.T) {
	before := "// f adds.\nfunc f() {\n\ta()\n\tb()\n\tfor {\n\t\tc()\n\t\td()\n\t}\n\te()\n\tg()\n}\n"
	now := "// f adds.\nfunc f() {\n\ta()\n\tb()\n\tfor {\n\t\tc()\n\t\td()\n\t\tnew()\n\t}\n\te()\n\tg()\n}\n"
	want := "func f() {\n\t// …\n\tfor {\n\t\t// …\n\t\tnew()\n\t}\n\t// …\n}\n"
	if got := showChanges(before, now); got != want {
		t.Errorf("%s", got)
	}
	if got := showChanges("", now); got != now {
		t.Errorf("%s", got)
	}
	if got, want := showChanges("type a struct {\n\tx  int\n\tyy int\n}\n", "type a struct {\n\tx   int\n\tyy  int\n\tzzz int\n}\n"), "type a struct {\n\t// …\n\tzzz int\n}\n"; got != want {
		t.Errorf("%s", got)
	}
}
