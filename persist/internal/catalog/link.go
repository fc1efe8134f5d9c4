package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinks bounds the number of symbolic links to a file.
const maxLinks = 40

// Follow resolves the symbolic links at path and returns the path of the file. The last link may
// refer to a file that does not exist yet, if its directory exists.
func Follow(path string) (string, error) {
	for range maxLinks {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		link, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(link) {
			// Keep "..": its meaning depends on the links before it.
			link = filepath.Dir(path) + string(filepath.Separator) + link
		}
		dir, name := filepath.Split(link)
		if name == "" || name == "." || name == ".." {
			return link, nil // The link refers to a directory.
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", fmt.Errorf("the symbolic link %s leads nowhere: %w", path, err)
		}
		path = filepath.Join(dir, name)
	}
	return "", fmt.Errorf("%s: more than %d symbolic links", path, maxLinks)
}
