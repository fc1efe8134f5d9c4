// Package chapters has the programs of the guide in docs/guide. Each chapter has a test file, whose
// functions are the code blocks of the chapter.
package chapters
