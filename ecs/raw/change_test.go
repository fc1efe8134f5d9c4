package raw_test

import (
	"fmt"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

func TestOpKind_String(t *testing.T) {
	const want = "create destroy add remove clear operation 5 operation 255"
	if got := fmt.Sprint(raw.OpCreate, " ", raw.OpDestroy, " ", raw.OpAdd, " ", raw.OpRemove, " ", raw.OpClear, " ", raw.OpClear+1, " ", raw.OpKind(255)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
