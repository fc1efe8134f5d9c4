package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A directSync is a direct call of the method SyncDir. The method fails on file systems that cannot
// sync directories.
var directSync = regexp.MustCompile(`\b([A-Za-z]\w*)\.SyncDir\(`)

// directSyncs returns the calls of methods SyncDir in source. It omits calls of the function
// disk.SyncDir.
func directSyncs(source string) (calls []string) {
	for _, call := range directSync.FindAllStringSubmatch(source, -1) {
		if call[1] != "disk" {
			calls = append(calls, call[0])
		}
	}
	return calls
}

// Stores must open on file systems that cannot sync directories. So all code must call the function
// disk.SyncDir.
func TestSyncDir_CalledOnlyByDisk(t *testing.T) {
	// persist/open.go checks whether the file system can sync directories.
	allowed := map[string]int{"persist/open.go": 1}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("..", "..")+string(filepath.Separator)))
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "disk/") {
			return err
		}
		source, err := os.ReadFile(path)
		if calls := directSyncs(string(source)); len(calls) != allowed[name] {
			t.Errorf("%s calls %q: call disk.SyncDir", name, calls)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDirectSyncs_FindsCall(t *testing.T) {
	source := "disk.SyncDir(files, dir)\nw.j.fs.SyncDir(dir)\nfunc (g *gate) SyncDir(dir string) error {"
	if calls := directSyncs(source); len(calls) != 1 || calls[0] != "fs.SyncDir(" {
		t.Errorf("directSyncs(%q) = %q", source, calls)
	}
}
