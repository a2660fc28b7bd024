package main

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

func at(call, until int64, one operation) operation {
	one.Call, one.Return = call, &until
	return one
}

func accept(call, until int64) operation { return at(call, until, operation{Kind: "accept"}) }

func attempt(call, until int64, n int, isSuccess bool) operation {
	return at(call, until, operation{Kind: "attempt", Attempt: n, IsSuccess: isSuccess})
}

func read(state string, attempts int) operation {
	return at(1_000, 1_001, operation{Kind: "read", State: state, Attempts: attempts})
}

func inLine(kind, event string, call, until int64) operation {
	return at(call, until, operation{Kind: kind, Event: event})
}

// Each history that breaks a promise is refused, and the one beside it that keeps it is not.
func TestChecker(t *testing.T) {
	unanswered := operation{Kind: "accept", Call: 1}
	twice := []operation{accept(1, 2), attempt(3, 4, 1, true), attempt(5, 6, 1, true), read("SUCCESSFUL", 1)}
	cases := []struct {
		name  string
		model porcupine.Model
		all   []operation
		fits  bool
	}{
		{"a delivery after a retry", eventModel(false), []operation{accept(1, 2), attempt(3, 4, 1, false), attempt(5, 6, 2, true), read("SUCCESSFUL", 2)}, true},
		{"a lost event", eventModel(false), []operation{accept(1, 2), read("ABSENT", 0)}, false},
		{"a success that no target saw", eventModel(false), []operation{accept(1, 2), read("SUCCESSFUL", 1)}, false},
		{"a delivery before its acceptance began", eventModel(false), []operation{accept(5, 6), attempt(1, 2, 1, true), read("SUCCESSFUL", 1)}, false},
		{"a delivery of what was not answered", eventModel(false), []operation{unanswered, attempt(3, 4, 1, true), read("SUCCESSFUL", 1)}, true},
		{"a doubled delivery", eventModel(false), twice, false},
		{"a delivery repeated after a crash", eventModel(true), twice, true},
		{"a retry after a success", eventModel(true), []operation{accept(1, 2), attempt(3, 4, 1, true), attempt(5, 6, 2, true), read("SUCCESSFUL", 2)}, false},
		{"a line in order", lineModel, []operation{inLine("enter", "a", 1, 2), inLine("enter", "b", 3, 4), inLine("begin", "a", 5, 6), inLine("over", "a", 7, 8), inLine("begin", "b", 9, 10), inLine("over", "b", 11, 12)}, true},
		{"an inversion", lineModel, []operation{inLine("enter", "a", 1, 2), inLine("enter", "b", 3, 4), inLine("begin", "b", 5, 6), inLine("over", "b", 7, 8), inLine("begin", "a", 9, 10), inLine("over", "a", 11, 12)}, false},
		{"either order of two that came together", lineModel, []operation{inLine("enter", "a", 1, 4), inLine("enter", "b", 2, 3), inLine("begin", "b", 5, 6), inLine("over", "b", 7, 8), inLine("begin", "a", 9, 10), inLine("over", "a", 11, 12)}, true},
		{"two at a time", lineModel, []operation{inLine("enter", "a", 1, 2), inLine("enter", "b", 3, 4), inLine("begin", "a", 5, 6), inLine("begin", "b", 7, 8), inLine("over", "a", 9, 10), inLine("over", "b", 11, 12)}, false},
	}
	for _, one := range cases {
		if fits := porcupine.CheckOperations(one.model, operationsOf(one.all)); fits != one.fits {
			t.Errorf("%s: fits %v", one.name, fits)
		}
	}
}
