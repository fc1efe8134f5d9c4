package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinks bounds how many symbolic links lead to a file.
const maxLinks = 40

// Follow returns the path of the file that path leads to by symbolic links. The last link may lead to a file
// that does not exist, in a directory that does.
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
			// Not filepath.Join: what ".." leads to depends on the links before it.
			link = filepath.Dir(path) + string(filepath.Separator) + link
		}
		dir, name := filepath.Split(link)
		if name == "" || name == "." || name == ".." {
			return link, nil // A directory.
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", fmt.Errorf("the symbolic link %s leads nowhere: %w", path, err)
		}
		path = filepath.Join(dir, name)
	}
	return "", fmt.Errorf("%s: more than %d symbolic links", path, maxLinks)
}
