package guide

import "fmt"

func ExampleGreet() {
	for range 2 {
		fmt.Println("hello")
	}
	// Output:
	// hello
	// hello
}
