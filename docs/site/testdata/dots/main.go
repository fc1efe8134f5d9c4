// Dots is a program for tests of the site: a dot moves on a line, with a history of 100 ticks.
package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall/js"
)

type state struct{ x, jumps int }

var (
	width   = 20
	history = []state{{}}
	oldest  = 0
	now     = 0
)

func main() {
	fmt.Println("ready")
	text := func(f func(arg string) string) js.Func {
		return js.FuncOf(func(_ js.Value, args []js.Value) any {
			if len(args) > 0 {
				return f(args[0].String())
			}
			return f("")
		})
	}
	number := func(f func() int) js.Func {
		return js.FuncOf(func(js.Value, []js.Value) any { return f() })
	}
	js.Global().Call("stetReady", map[string]any{
		"title": "Dots",
		"rate":  20,
		"params": text(func(string) string {
			out, _ := json.Marshal([]map[string]any{{"name": "width", "value": width, "min": 5, "max": 60, "step": 1}})
			return string(out)
		}),
		"set": js.FuncOf(func(_ js.Value, args []js.Value) any {
			width = args[1].Int()
			return ""
		}),
		"restart": text(func(string) string {
			history, oldest, now = []state{{}}, 0, 0
			return ""
		}),
		"step": text(func(keys string) string {
			s := history[now-oldest]
			if strings.Contains(keys, "left") {
				s.x--
			} else {
				s.x++
			}
			s.x = (s.x + width) % width
			add(s)
			return ""
		}),
		"tick":   number(func() int { return now }),
		"oldest": number(func() int { return oldest }),
		"newest": number(func() int { return oldest + len(history) - 1 }),
		"seek": js.FuncOf(func(_ js.Value, args []js.Value) any {
			to := args[0].Int()
			if to < oldest || to >= oldest+len(history) {
				return fmt.Sprintf("dots: tick %d is not held", to)
			}
			now = to
			return ""
		}),
		"view": text(func(string) string {
			s := history[now-oldest]
			return fmt.Sprintf("+%[1]s+\n|%[2]s●%[3]s|\n+%[1]s+\n%[4]d jumps", strings.Repeat("-", width), strings.Repeat(" ", s.x), strings.Repeat(" ", width-s.x-1), s.jumps)
		}),
		"actions": text(func(string) string { return `["jump", "fail"]` }),
		"act": text(func(name string) string {
			if name == "fail" {
				return "dots: this action fails"
			}
			s := history[now-oldest]
			s.x, s.jumps = (s.x+width/2)%width, s.jumps+1
			add(s)
			return ""
		}),
	})
	select {}
}

// add ends a tick.
func add(s state) {
	history = append(history[:now-oldest+1], s)
	now++
	if len(history) > 100 {
		history = history[1:]
		oldest++
	}
}
