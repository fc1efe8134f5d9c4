package main

import (
	"syscall/js"

	"github.com/stet-ecs/stet/examples/asteroids/game"
)

// A tone glides from one frequency to another. Frequencies are in hertz.
type tone struct {
	shape    string // The type of an oscillator.
	from, to float64
	seconds  float64
	volume   float64
}

var tones = [...]tone{
	game.Shot:     {"square", 900, 200, 0.08, 0.03},
	game.Burst:    {"triangle", 240, 60, 0.12, 0.06},
	game.Split:    {"sawtooth", 160, 40, 0.25, 0.08},
	game.Crash:    {"sawtooth", 220, 20, 0.9, 0.15},
	game.NextWave: {"sine", 330, 660, 0.5, 0.1},
}

// sounds is the AudioContext of the page. A browser allows sounds after the first key.
var sounds js.Value

// play plays each kind of sound at most once per frame.
func play(heard []game.Sound) {
	played := [len(tones)]bool{}
	for _, s := range heard {
		if !played[s] {
			played[s] = true
			tones[s].play()
		}
	}
}

func (t tone) play() {
	if sounds.IsUndefined() {
		context := js.Global().Get("AudioContext")
		if !context.Truthy() {
			return
		}
		sounds = context.New()
	}
	now := sounds.Get("currentTime").Float()
	wave, volume := sounds.Call("createOscillator"), sounds.Call("createGain")
	wave.Set("type", t.shape)
	wave.Get("frequency").Call("setValueAtTime", t.from, now)
	wave.Get("frequency").Call("exponentialRampToValueAtTime", t.to, now+t.seconds)
	volume.Get("gain").Call("setValueAtTime", t.volume, now)
	volume.Get("gain").Call("exponentialRampToValueAtTime", 0.001, now+t.seconds)
	wave.Call("connect", volume)
	volume.Call("connect", sounds.Get("destination"))
	wave.Call("start", now)
	wave.Call("stop", now+t.seconds)
}
