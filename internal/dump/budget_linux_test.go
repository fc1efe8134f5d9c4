package dump

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

var dataDir = flag.String("data", "", "what make inspect-data made, for BenchmarkInspectorCommands")

// A commandBudget is what a command on some of that data may take.
type commandBudget struct {
	name   string
	args   []string // The first that names data is a path in it.
	limit  time.Duration
	memory int64 // In MB; 0: it was not bounded.
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
	{"log", []string{"log", "long", "--limit", "0"}, 3 * time.Second, 0},
	{"bisect-scan", []string{"bisect", "wide", "sum(Health.Points) < 0", "1000..4300", "--scan"}, 5 * time.Second, 0},
	{"plot", []string{"plot", "wide", "sum(Health.Points)"}, 5 * time.Second, 0},
}

// BenchmarkInspectorCommands: commands on a save of 1 GB, a store of 50,000 ticks and one of 200,000
// entities and 5,000 ticks, each a few times, by processes: the time of the clock, that of the
// processors beside it, and the most memory.
func BenchmarkInspectorCommands(b *testing.B) {
	if *dataDir == "" {
		b.Skip("no -data: make inspect-budgets DIR=… has it")
	}
	program := filepath.Join(b.TempDir(), "ecsdump")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/ecsdump").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, c := range commandBudgets {
		b.Run(c.name, func(b *testing.B) {
			args := slices.Clone(c.args)
			args[1] = filepath.Join(*dataDir, args[1])
			var walls, cpus []time.Duration
			memory := int64(0)
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
				memory = max(memory, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
			}
			walls, cpus = walls[1:], cpus[1:] // The first reads from the disk.
			slices.Sort(walls)
			slices.Sort(cpus)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(walls[len(walls)/2])/1e6, "ms/more")
			b.ReportMetric(float64(c.limit)/1e6, "ms/budget")
			b.ReportMetric(float64(walls[0])/1e6, "best-ms")
			b.ReportMetric(float64(cpus[len(cpus)/2])/1e6, "cpu-ms")
			if b.ReportMetric(float64(memory)/1e3, "MB/more"); c.memory > 0 {
				b.ReportMetric(float64(c.memory), "MB/budget")
			}
		})
	}
}
