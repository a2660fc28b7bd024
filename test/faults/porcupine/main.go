// Checks the histories of fault rounds with Porcupine, a checker of linearizability that is not ours:
//
//	go run . <folder of a run with --rounds>
//
// Each event and each line of a key is a history of its own. The models say what one may see; Porcupine looks for an order of the operations
// that fits both the model and the times. Exits with 1 when a history has no such order, or when one could not be decided in time.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// For one history. The largest has a few hundred operations, nearly all one after the other.
const patience = 30 * time.Second

// An operation as History.ts writes it.
type operation struct {
	Kind      string `json:"kind"`
	Call      int64  `json:"call"`
	Return    *int64 `json:"return"`
	Attempt   int    `json:"attempt"`
	IsSuccess bool   `json:"isSuccess"`
	State     string `json:"state"`
	Attempts  int    `json:"attempts"`
	Event     string `json:"event"`
}

type part struct {
	Name       string      `json:"name"`
	Operations []operation `json:"operations"`
}

type history struct {
	MayRepeat bool   `json:"mayRepeat"`
	Events    []part `json:"events"`
	Lines     []part `json:"lines"`
}

// An event: nothing is delivered before it was accepted, its attempts go up, none follows a success, and what the database says in the end is what
// was seen. Only where memory was lost may the last attempt be repeated.
type event struct {
	accepted  bool
	last      int
	succeeded bool
}

func eventModel(mayRepeat bool) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return event{} },
		Step: func(state, input, _ interface{}) (bool, interface{}) {
			of, one := state.(event), input.(operation)
			switch one.Kind {
			case "accept":
				return !of.accepted, event{true, of.last, of.succeeded}
			case "attempt":
				isNext := one.Attempt > of.last && !of.succeeded
				isAgain := mayRepeat && one.Attempt == of.last
				return of.accepted && (isNext || isAgain), event{true, one.Attempt, of.succeeded || one.IsSuccess}
			case "read":
				switch one.State {
				case "SUCCESSFUL":
					return of.accepted && of.succeeded && one.Attempts == of.last, of
				case "FAILED":
					return of.accepted && one.Attempts >= of.last, of
				}
			}
			return false, of
		},
	}
}

// A line: events leave in the order in which they came in, one at a time. The state is the events that wait, the first of them under way or not.
type line struct {
	waiting string
	isBusy  bool
}

var lineModel = porcupine.Model{
	Init: func() interface{} { return line{} },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		of, one := state.(line), input.(operation)
		id := one.Event + " "
		isFirst := strings.HasPrefix(of.waiting, id)
		switch one.Kind {
		case "enter":
			return true, line{of.waiting + id, of.isBusy}
		case "begin":
			return isFirst && !of.isBusy, line{of.waiting, true}
		case "over":
			if !isFirst || !of.isBusy {
				return false, of
			}
			return true, line{of.waiting[len(id):], false}
		}
		return false, of
	},
}

// The operations with times that Porcupine takes. What may have happened at any later time ends after all others.
func operationsOf(all []operation) []porcupine.Operation {
	var end int64
	for _, one := range all {
		if one.Call > end {
			end = one.Call
		}
		if one.Return != nil && *one.Return > end {
			end = *one.Return
		}
	}
	operations := make([]porcupine.Operation, len(all))
	for n, one := range all {
		until := end + 1
		if one.Return != nil {
			until = *one.Return
		}
		operations[n] = porcupine.Operation{ClientId: n, Input: one, Call: one.Call, Output: nil, Return: until}
	}
	return operations
}

type tally struct{ histories, operations, wrong, undecided int }

func (sum *tally) check(model porcupine.Model, where string, parts []part) {
	for _, one := range parts {
		sum.histories++
		sum.operations += len(one.Operations)
		switch porcupine.CheckOperationsTimeout(model, operationsOf(one.Operations), patience) {
		case porcupine.Illegal:
			sum.wrong++
			text, _ := json.Marshal(one)
			fmt.Printf("NOT LINEARIZABLE %s %s\n", where, text)
		case porcupine.Unknown:
			sum.undecided++
			fmt.Printf("undecided after %s: %s %s\n", patience, where, one.Name)
		}
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . <folder of a run with --rounds>")
		os.Exit(2)
	}
	files, _ := filepath.Glob(filepath.Join(os.Args[1], "round-*", "history.json"))
	var events, lines tally
	for _, file := range files {
		text, err := os.ReadFile(file)
		var read history
		if err == nil {
			err = json.Unmarshal(text, &read)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		round := filepath.Base(filepath.Dir(file))
		events.check(eventModel(read.MayRepeat), round, read.Events)
		lines.check(lineModel, round, read.Lines)
	}
	fmt.Printf("rounds %d\n", len(files))
	for _, kind := range []struct {
		name string
		of   tally
	}{{"events", events}, {"lines", lines}} {
		fmt.Printf("%s: %d histories, %d operations, %d not linearizable, %d undecided\n", kind.name, kind.of.histories, kind.of.operations, kind.of.wrong, kind.of.undecided)
	}
	if len(files) == 0 || events.wrong+events.undecided+lines.wrong+lines.undecided > 0 {
		os.Exit(1)
	}
}
