package dump

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

var dataDir = flag.String("data", "", "what make inspect-data made, for BenchmarkInspectorCommands")

// A commandBudget is the time and memory limit of a command on one of the data sets.
type commandBudget struct {
	name string
	// The second argument is the name of a data set. The path of the data set replaces it.
	args   []string
	limit  time.Duration
	memory int64 // In MB; 0 means unlimited.
}

// buildEcsdump builds ecsdump and returns its path.
func buildEcsdump(tb testing.TB) string {
	program := filepath.Join(tb.TempDir(), "ecsdump")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/ecsdump").CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return program
}

// smallBudgets lists commands on a save of about 80 MB with their memory limits in MB. A command
// that loads the whole save exceeds its limit.
var smallBudgets = []struct {
	name   string
	args   []string // SAVE stands for the path of the save.
	memory int64
}{
	{"sort", []string{"query", "SAVE", "--sort", "Position.X", "-n", "5"}, 50},
	{"sort-all", []string{"query", "SAVE", "--sort", "Position.X", "--limit", "0", "--select", "Health"}, 70},
	{"edit-dry-run", []string{"edit", "SAVE", "Health = Health + 1", "--dry-run"}, 80},
}

// largeSaveName is an environment variable with a file name. If it is set, this test binary writes
// a large save to the file and exits.
const largeSaveName = "STET_LARGE_SAVE"

// peakName is an environment variable. If it is set, this test binary runs its arguments as a
// command, prints the peak memory of the command in KB, and exits.
const peakName = "STET_PEAK"

// If largeSaveName is set, init writes a large save and exits. If peakName is set, init runs a
// command and exits.
func init() {
	if os.Getenv(peakName) != "" {
		cmd := exec.Command(os.Args[1], os.Args[2:]...)
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Printf("%v\n%s", err, out)
			os.Exit(1)
		}
		fmt.Print(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
		os.Exit(0)
	}
	name := os.Getenv(largeSaveName)
	if name == "" {
		return
	}
	type large struct{ Values [60]int32 }
	w := ecs.NewWorld(ecs.Options{})
	positions, healths, values := ecs.MustRegister[Position](w), ecs.MustRegister[Health](w), ecs.MustRegister[large](w)
	for i := range 280_000 {
		e := w.Create()
		positions.Set(e, Position{float64(i), 1})
		healths.Set(e, Health(i%100))
		values.Set(e, large{[60]int32{int32(i)}})
	}
	if err := persist.Save(context.Background(), name, w); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// smallMemory runs each command of smallBudgets as a process and calls report() with the peak
// memory of the process.
func smallMemory(tb testing.TB, report func(i int, mb float64)) {
	save := filepath.Join(tb.TempDir(), "large.save")
	maker := exec.Command(os.Args[0])
	maker.Env = append(os.Environ(), largeSaveName+"="+save)
	if out, err := maker.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	program := buildEcsdump(tb)
	for i, c := range smallBudgets {
		args := slices.Insert(slices.Clone(c.args), 0, program)
		args[2] = save
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), peakName+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			tb.Fatalf("%s: %v\n%s", c.name, err, out)
		}
		kb, err := strconv.Atoi(string(out))
		if err != nil {
			tb.Fatalf("%s: %v", c.name, err)
		}
		report(i, float64(kb)/1e3)
	}
}

// BenchmarkBudgetCommandMemory measures the memory of commands that evaluate all entities of a save
// of 80 MB.
func BenchmarkBudgetCommandMemory(b *testing.B) {
	smallMemory(b, func(i int, mb float64) {
		b.Run(smallBudgets[i].name, func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(mb, "MB/more")
			b.ReportMetric(float64(smallBudgets[i].memory), "MB/budget")
		})
	})
}

// The commands of smallBudgets stay within their memory limits, so they do not load the whole save.
func TestCommands_DoNotLoadWholeSave(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes a save of 80 MB")
	}
	smallMemory(t, func(i int, mb float64) {
		t.Logf("%s: %.0f MB", smallBudgets[i].name, mb)
		if mb > float64(smallBudgets[i].memory) {
			t.Errorf("%s takes %.0f MB, want at most %d", smallBudgets[i].name, mb, smallBudgets[i].memory)
		}
	})
}

var commandBudgets = []commandBudget{
	{"info", []string{"info", "large.save"}, 50 * time.Millisecond, 30},
	{"schema", []string{"schema", "large.save"}, 50 * time.Millisecond, 30},
	{"stats", []string{"stats", "large.save"}, 50 * time.Millisecond, 30},
	{"resources", []string{"show", "large.save", "--resources"}, 50 * time.Millisecond, 30},
	{"arrays", []string{"arrays", "large.save", "Position", "--limit", "20"}, 100 * time.Millisecond, 50},
	{"ls-with", []string{"ls", "large.save", "--with", "Label", "--limit", "20"}, 100 * time.Millisecond, 50},
	{"ls-offset", []string{"ls", "large.save", "--offset", "5000000", "--limit", "20"}, 100 * time.Millisecond, 50},
	{"ls-where", []string{"ls", "large.save", "--where", "Health.Points < 3", "--limit", "20"}, 300 * time.Millisecond, 0},
	{"group-by", []string{"query", "large.save", "--count", "--group-by", "Team.Number"}, 1500 * time.Millisecond, 200},
	{"sort", []string{"query", "large.save", "--sort", "Position.X", "-n", "5"}, 3 * time.Second, 150},
	{"sort-all", []string{"query", "large.save", "--sort", "Position.X", "--limit", "0"}, 30 * time.Second, 500},
	{"edit-dry-run", []string{"edit", "large.save", "Health.Points = Health.Points + 1", "--dry-run"}, 10 * time.Second, 300},
	{"log", []string{"log", "long", "--limit", "0"}, 3 * time.Second, 0},
	{"bisect-scan", []string{"bisect", "wide", "sum(Health.Points) < 0", "1000..4300", "--scan"}, 5 * time.Second, 0},
	{"plot", []string{"plot", "wide", "sum(Health.Points)"}, 5 * time.Second, 0},
}

// BenchmarkInspectorCommands measures commands on a save of 1 GB, a store of 50,000 ticks, and a
// store of 200,000 entities and 5,000 ticks. It runs each command several times as a process. It
// reports wall time, processor time and peak memory.
func BenchmarkInspectorCommands(b *testing.B) {
	if *dataDir == "" {
		b.Skip("no -data: make inspect-budgets DIR=… has it")
	}
	program := buildEcsdump(b)
	for _, c := range commandBudgets {
		b.Run(c.name, func(b *testing.B) {
			args := slices.Clone(c.args)
			args[1] = filepath.Join(*dataDir, args[1])
			var walls, cpus []time.Duration
			memory := 0.0
			for range 6 {
				cmd := exec.Command(program, args...)
				cmd.Env = append(os.Environ(), "COLUMNS=")
				begun := time.Now()
				if out, err := cmd.Output(); err != nil {
					if code := cmd.ProcessState.ExitCode(); code != exitNotFound {
						b.Fatalf("%q: %v\n%s", args, err, out)
					}
				}
				walls = append(walls, time.Since(begun))
				cpus = append(cpus, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
				memory = max(memory, float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss))
			}
			// The first run is not counted, because it reads from the disk.
			walls, cpus = walls[1:], cpus[1:]
			slices.Sort(walls)
			slices.Sort(cpus)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(walls[len(walls)/2])/1e6, "ms/more")
			b.ReportMetric(float64(c.limit)/1e6, "ms/budget")
			b.ReportMetric(float64(walls[0])/1e6, "best-ms")
			b.ReportMetric(float64(cpus[len(cpus)/2])/1e6, "cpu-ms")
			if b.ReportMetric(memory/1e3, "MB/more"); c.memory > 0 {
				b.ReportMetric(float64(c.memory), "MB/budget")
			}
		})
	}
}
