package replica

import (
	"errors"

	"github.com/stet-ecs/stet/persist"
)

// ErrOperator reports that the log accepts or returns no entries until an operator acts. For
// example, its stream was removed or is full, or the login of this machine has expired. Engines
// wrap this error. Owners and followers keep trying, so they continue by themselves after the
// repair.
var ErrOperator = errors.New("replica: an operator must act")

// ErrUnfinished reports a log whose first owner did not send its store completely. Only the machine
// that has the store can claim it.
var ErrUnfinished = errors.New("replica: the store was not sent completely; claim it on the machine that has it")

// A Class groups errors by the reaction that resolves them.
type Class int

const (
	// None is the class of a nil error.
	None Class = iota

	// Retried errors may be temporary. For example, a server does not answer, or gives a stale
	// answer. The call is repeated.
	Retried

	// Fenced errors end an ownership: another machine claimed the store, or the log lost entries of
	// this owner. Close the owner and follow again.
	Fenced

	// Operator errors persist until an operator repairs the engine, the settings or the program.
	Operator
)

// String returns the name of a class in lower case.
func (c Class) String() string {
	return [...]string{"none", "retried", "fenced", "operator"}[c]
}

// ClassOf returns the class of an error of this package, of a [Log], or of opening the store.
func ClassOf(err error) Class {
	if err == nil {
		return None
	}
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.class
		}
	}
	return Retried
}

// The first match decides. ErrLost is the first entry, because it may wrap the reason for the loss.
var classes = []struct {
	err   error
	class Class
}{
	{persist.ErrLost, Fenced},
	{ErrTaken, Fenced},
	{ErrOperator, Operator},
	{ErrLogShorter, Operator},
	{ErrUnfinished, Operator},
	{errEntry, Operator},
	{persist.ErrNewer, Operator},
	{persist.ErrForeign, Operator},
	{persist.ErrSchema, Operator},
	{persist.ErrCorrupt, Operator},
	{persist.ErrLocked, Operator},
}
