// Command performance measures what reelahead costs and gains, figure by figure,
// each against what it is compared with in the same run. docs/performance.md
// says what each figure is and how it is measured.
//
// A figure (figures.go) is a function that sets up its own sources and mounts on
// a bench.Stage, measures both sides in turns and returns rows. Everything is
// served by processes of its own, since a process must not read from a mount
// that it serves; this one is the player and the observer.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Exit statuses: a missed target is a result and no failure.
const (
	exitFailure     = 1
	exitUsage       = 64
	exitInterrupted = 128 + int(syscall.SIGINT)
)

type options struct {
	figures  []figure
	program  string
	jsonPath string
	profile  string
	quick    bool
	repeat   int
}

func main() {
	if role := os.Getenv(roleVariable); role == roleLoopback {
		if err := serveLoopback(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "loopback:", err)
			os.Exit(exitFailure)
		}
		return
	}
	chosen, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal, which cleans up, a second one ends at once.
	go func() { <-ctx.Done(); stop() }()
	if err := measure(ctx, chosen); err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		if ctx.Err() != nil {
			os.Exit(exitInterrupted)
		}
		os.Exit(exitFailure)
	}
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("performance", flag.ContinueOnError)
	numbers := flags.String("figures", "", "numbers of the figures, as in 1,2,6 (default: all but those that compare with other programs)")
	flags.BoolVar(&o.quick, "quick", false, "fewer frames and runs: to see that it works, not to quote")
	flags.IntVar(&o.repeat, "repeat", 0, "runs of each side (default: 5, quick 2; long figures have fewer)")
	flags.StringVar(&o.jsonPath, "json", "", "write the rows as JSON to `FILE`")
	flags.StringVar(&o.program, "program", "", "reelahead to measure (default: built from this repository)")
	flags.StringVar(&o.profile, "profile", "", "record player, daemon and model of the runs with reelahead with perf(1) into `DIR`, the last run of each")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.repeat < 0 {
		return o, fmt.Errorf("--repeat must be at least 1, not %d", o.repeat)
	}
	var err error
	o.figures, err = chooseFigures(*numbers)
	return o, err
}

// chooseFigures finds figures by their numbers, in the order given.
func chooseFigures(numbers string) ([]figure, error) {
	var chosen []figure
	if numbers == "" {
		for _, f := range figures {
			if !f.rivals {
				chosen = append(chosen, f)
			}
		}
		return chosen, nil
	}
	for _, text := range strings.Split(numbers, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > len(figures) {
			return nil, fmt.Errorf("--figures: %q is not a number from 1 to %d", text, len(figures))
		}
		chosen = append(chosen, figures[n-1])
	}
	return chosen, nil
}

// measure runs the figures and prints the rows of all of them, also when one
// fails or the run is interrupted.
func measure(ctx context.Context, o options) error {
	if os.Geteuid() != 0 {
		return errors.New("it needs root: what is measured is the kernel's passthrough, and the read-ahead of mounts is set")
	}
	work, err := os.MkdirTemp("", "reelahead-performance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b := &bencher{options: o, memory: newMemoryWatch()}
	if o.profile != "" {
		if err := os.MkdirAll(o.profile, 0o755); err != nil {
			return err
		}
	}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.program == "" {
		b.program = filepath.Join(work, "reelahead")
		if err := buildProgram(ctx, b.program); err != nil {
			return err
		}
	}
	result := newResult(ctx, b)
	var failures []error
	for _, f := range o.figures {
		if ctx.Err() != nil {
			break
		}
		b.say("figure %d: %s", f.number, f.name)
		rows, err := f.measure(ctx, b)
		for i := range rows {
			rows[i].Figure = f.number
			b.say("  %s", rows[i])
		}
		result.Rows = append(result.Rows, rows...)
		if err != nil {
			err = fmt.Errorf("figure %d: %w", f.number, err)
			b.say("%v", err)
			failures = append(failures, err)
		}
	}
	if err := result.writeTable(os.Stdout); err != nil {
		return err
	}
	if o.jsonPath != "" {
		text, err := json.MarshalIndent(result, "", "  ")
		if err == nil {
			err = os.WriteFile(o.jsonPath, append(text, '\n'), 0o644)
		}
		failures = append(failures, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // which the failures only repeat
	}
	return errors.Join(failures...)
}

func buildProgram(ctx context.Context, path string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "reelahead/cmd/reelahead")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return nil
}
