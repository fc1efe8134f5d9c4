package replica

import (
	"encoding/binary"
	"hash/crc32"
)

// Named returns the file that an entry gives a name, or names.
func Named(data []byte) (names []string) {
	_, ops, err := decodeEntry(data)
	if err != nil {
		panic(err)
	}
	for _, o := range ops {
		if o.kind == opWhole {
			names = append(names, o.name)
		}
	}
	return names
}

// resum gives an entry the checksum of what it says.
func resum(entry []byte) []byte {
	binary.LittleEndian.PutUint32(entry[4:], crc32.Checksum(entry[8:], castagnoli))
	return entry
}
