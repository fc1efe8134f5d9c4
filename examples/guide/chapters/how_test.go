package chapters_test

import "fmt"

func Example_howSparseSet() {
	var sparse, dense [6]int
	n := 0
	has := func(e int) bool { return sparse[e] < n && dense[sparse[e]] == e }
	add := func(e int) {
		sparse[e], dense[n] = n, e
		n++
	}
	remove := func(e int) { // Swap with the last element, and pop it.
		n--
		row, last := sparse[e], dense[n]
		sparse[last], dense[row] = row, last
		sparse[e], dense[n] = n, e
	}
	add(3)
	add(1)
	add(5)
	before := n
	remove(3)
	fmt.Println(dense[:n], has(3))
	n = before // Undo: the removed element is still behind the end.
	fmt.Println(dense[:n], has(3))
	n = 0 // A clear, for any number of elements.
	fmt.Println(dense[:n], has(3))
	// Output:
	// [5 1] false
	// [5 1 3] true
	// [] false
}
