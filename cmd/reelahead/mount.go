package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"reelahead/fusefs"
	"reelahead/prefetch"
)

// unmountPatience is how long a clean unmount waits for open files before it
// aborts: long enough for a player to finish a frame, short enough for a
// service manager (systemd kills after 90 s).
const unmountPatience = 10 * time.Second

// mountFlags are the flags of mount; each can also be given by -o.
type mountFlags struct {
	cacheSize     sizeFlag
	ahead         string
	behind        int
	maxInflight   string
	maxBandwidth  rateFlag
	validity      time.Duration
	readOnly      bool
	allowOther    bool
	allowNonEmpty bool
	passthrough   string
	prefetch      string
	logLevel      string
	logFormat     string
	logFile       string
	record        string
	daemon        bool
	options       []string
}

func newMountCommand() *cobra.Command {
	var flags mountFlags
	cmd := &cobra.Command{
		Use:   "mount SOURCE MOUNTPOINT",
		Short: "Mount a read-ahead view of SOURCE",
		Long: `Mount a read-write view of the directory SOURCE on MOUNTPOINT, in which the
files that will be read next are fetched before they are opened.

SOURCE and MOUNTPOINT may be the same directory: then every path stays as it is.
The command stays in the foreground until the mount ends: by "reelahead unmount",
by umount(8), or by SIGINT or SIGTERM. A second signal aborts the mount even if
its files are in use.`,
		Example: `  reelahead mount /mnt/nas/show /show --cache-size 16G
  reelahead mount /mnt/nas/show /mnt/nas/show --daemon
  mount -t fuse.reelahead /mnt/nas/show /show -o cache-size=16G,allow_other`,
		Args: namedArgs("SOURCE", "MOUNTPOINT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.applyOptions(cmd); err != nil {
				return err
			}
			return runMount(cmd, args[0], args[1], flags)
		},
	}
	f := cmd.Flags()
	f.Var(&flags.cacheSize, "cache-size", "memory for frames, for example 512MiB or 16G (default: a quarter of what is available)")
	f.StringVar(&flags.ahead, "ahead", "auto", "frames to fetch ahead of each reader: auto or a number")
	f.IntVar(&flags.behind, "behind", 50, "percent of the cache that frames already read may fill")
	f.StringVar(&flags.maxInflight, "max-inflight", "auto", "reads on the source at once: auto or a number")
	f.Var(&flags.maxBandwidth, "max-bandwidth", "most to take from the source, for example 800MB/s (default: no limit)")
	f.DurationVar(&flags.validity, "validity", 3*time.Second, "how long what is known of a file holds without asking the source; 0 asks at every open")
	f.BoolVar(&flags.readOnly, "read-only", false, "refuse writes")
	f.BoolVar(&flags.allowOther, "allow-other", false, "let other users in, by the files' mode bits")
	f.BoolVar(&flags.allowNonEmpty, "allow-non-empty", false, "mount over a directory that has files")
	f.StringVar(&flags.passthrough, "passthrough", "auto", "let the kernel read ready frames by itself: auto or off")
	f.StringVar(&flags.prefetch, "prefetch", "on", "fetch ahead: on or off")
	f.StringVar(&flags.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&flags.logFormat, "log-format", "console", "console or json")
	f.StringVar(&flags.logFile, "log-file", "", "write the log there instead of standard error")
	f.StringVar(&flags.record, "record", "", "write every open for reading to this file, for \"reelahead predict --trace\"")
	f.BoolVar(&flags.daemon, "daemon", false, "return once the mount answers and go on in the background")
	f.StringArrayVarP(&flags.options, "options", "o", nil, "the flags above as mount(8) gives them: name[=value],…")
	return cmd
}

// genericOptions are options of mount(8) that either do not concern a
// filesystem or are the way it is mounted anyway.
var genericOptions = map[string]bool{
	"defaults": true, "rw": true, "auto": true, "noauto": true, "user": true, "nouser": true, "users": true,
	"nofail": true, "_netdev": true, "async": true, "atime": true, "noatime": true, "relatime": true,
	"dev": true, "nodev": true, "suid": true, "nosuid": true, "exec": true, "default_permissions": true,
}

// applyOptions turns -o name=value,… into flags.
func (m *mountFlags) applyOptions(cmd *cobra.Command) error {
	for _, list := range m.options {
		for _, option := range strings.Split(list, ",") {
			name, value, hasValue := strings.Cut(option, "=")
			switch {
			case name == "" || genericOptions[name] || strings.HasPrefix(name, "x-") || name == "subtype" || name == "fsname":
				continue
			case name == "ro":
				name = "read-only"
			case name == "nonempty":
				name = "allow-non-empty"
			default:
				name = strings.ReplaceAll(name, "_", "-")
			}
			flag := cmd.Flags().Lookup(name)
			if flag == nil || name == "options" {
				return usageError("unknown mount option %q (see %q)", option, cmd.CommandPath()+" --help")
			}
			if !hasValue {
				if flag.Value.Type() != "bool" {
					return usageError("mount option %q needs a value: %s=…", name, name)
				}
				value = "true"
			}
			if err := cmd.Flags().Set(name, value); err != nil {
				return usageError("mount option %q: %w", option, err)
			}
		}
	}
	return nil
}

func runMount(cmd *cobra.Command, source, mountpoint string, flags mountFlags) error {
	options, err := flags.mountOptions(source, mountpoint)
	if err != nil {
		return err
	}
	if flags.daemon && os.Getenv(readyVariable) == "" {
		return daemonize()
	}
	logger, closeLog, err := flags.logger()
	if err != nil {
		return err
	}
	defer closeLog()
	options.Engine.Log = logger

	// Signals that come while mounting end the mount once it stands.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	// Frame memory lies outside Go's heap; the rest is small and short-lived.
	debug.SetGCPercent(200)
	mount, err := fusefs.New(options)
	if err != nil {
		return err
	}
	logger.Info().
		Str("source", mount.Status().Source).Str("mountpoint", mount.Status().Mountpoint).
		Bool("passthrough", mount.Passthrough()).
		Str("cache", humanize.IBytes(uint64(options.Engine.CacheSize))).
		Msg("mounted")
	reportReady()
	return serve(mount, signals, logger)
}

// serve waits for the end of the mount, by whatever means.
func serve(mount *fusefs.Mount, signals <-chan os.Signal, logger zerolog.Logger) error {
	select {
	case <-mount.Done():
	case received := <-signals:
		logger.Info().Stringer("signal", received).Msg("unmounting; another signal aborts")
		ended := make(chan error, 1)
		go func() { ended <- mount.Unmount(unmountPatience) }()
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
		case received := <-signals:
			logger.Warn().Stringer("signal", received).Msg("aborting")
			mount.Abort()
			<-ended
		}
	}
	err := mount.Close()
	status := mount.Status()
	logger.Info().
		Int64("opens", status.Opens).Int64("ready", status.OpensReady).
		Int64("inflight", status.OpensInflight).Int64("cold", status.OpensCold).
		Str("fetched", humanize.IBytes(uint64(status.BytesFetched))).
		Msg("unmounted")
	if err != nil {
		logger.Warn().Err(err).Msg("not everything could be given back")
	}
	return nil
}

// mountOptions checks the flags against each other and the machine.
func (m *mountFlags) mountOptions(source, mountpoint string) (fusefs.Options, error) {
	none := fusefs.Options{}
	available, total, err := memory()
	if err != nil {
		return none, err
	}
	size := int64(m.cacheSize)
	switch {
	case size == 0:
		size = max(available/4, 64<<20)
	case size < 0 || size > total:
		return none, usageError("--cache-size %s is more than this machine's memory (%s)", humanize.IBytes(uint64(size)), humanize.IBytes(uint64(total)))
	}
	ahead, err := autoOrNumber("--ahead", m.ahead)
	if err != nil {
		return none, err
	}
	inflight, err := autoOrNumber("--max-inflight", m.maxInflight)
	if err != nil {
		return none, err
	}
	if m.behind < 0 || m.behind > 100 {
		return none, usageError("--behind %d is not a percentage: use 0 to 100", m.behind)
	}
	if m.validity < 0 {
		return none, usageError("--validity %s is negative", m.validity)
	}
	if err := oneOf("--passthrough", m.passthrough, "auto", "off"); err != nil {
		return none, err
	}
	if err := oneOf("--prefetch", m.prefetch, "on", "off"); err != nil {
		return none, err
	}
	if m.prefetch == "off" && ahead > 0 {
		return none, usageError("--prefetch off and --ahead %d contradict each other", ahead)
	}
	return fusefs.Options{
		Source:        source,
		Mountpoint:    mountpoint,
		ReadOnly:      m.readOnly,
		AllowOther:    m.allowOther,
		AllowNonEmpty: m.allowNonEmpty,
		Passthrough:   m.passthrough == "auto",
		Record:        m.record,
		Engine: prefetch.Config{
			CacheSize:     size,
			Ahead:         ahead,
			BehindPercent: m.behind,
			MaxInflight:   inflight,
			MaxBandwidth:  int64(m.maxBandwidth),
			Validity:      m.validity,
			Disabled:      m.prefetch == "off",
		},
	}, nil
}

func autoOrNumber(flag, text string) (int, error) {
	if text == "auto" {
		return 0, nil
	}
	var n int
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil || n < 1 || fmt.Sprint(n) != text {
		return 0, usageError("%s %q is neither auto nor a number from 1", flag, text)
	}
	return n, nil
}

func oneOf(flag, value string, choices ...string) error {
	for _, choice := range choices {
		if value == choice {
			return nil
		}
	}
	return usageError("%s %q is not one of: %s", flag, value, strings.Join(choices, ", "))
}

func (m *mountFlags) logger() (zerolog.Logger, func(), error) {
	level, err := zerolog.ParseLevel(m.logLevel)
	if err != nil || m.logLevel == "" {
		return zerolog.Nop(), nil, usageError("--log-level %q is not one of: debug, info, warn, error", m.logLevel)
	}
	if err := oneOf("--log-format", m.logFormat, "console", "json"); err != nil {
		return zerolog.Nop(), nil, err
	}
	out, closeLog := os.Stderr, func() {}
	if m.logFile != "" {
		file, err := os.OpenFile(m.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
		if err != nil {
			return zerolog.Nop(), nil, fmt.Errorf("log file: %w", err)
		}
		out, closeLog = file, func() { file.Close() }
	}
	logger := zerolog.New(out)
	if m.logFormat == "console" {
		logger = zerolog.New(zerolog.ConsoleWriter{Out: out, TimeFormat: time.TimeOnly, NoColor: m.logFile != "" || !isTerminal(out)})
	}
	return logger.Level(level).With().Timestamp().Logger(), closeLog, nil
}

// asMountHelper recognises the call of mount(8): "mount.fuse.reelahead SOURCE
// MOUNTPOINT -o …" or, by way of mount.fuse3, "reelahead SOURCE MOUNTPOINT -o …".
// It returns the arguments of the mount command that is meant, or nil.
func asMountHelper(args []string, isCommand func(string) bool) []string {
	if len(args) < 3 {
		return nil
	}
	byName := strings.HasPrefix(args[0][strings.LastIndexByte(args[0], '/')+1:], "mount.")
	if !byName && (isCommand(args[1]) || strings.HasPrefix(args[1], "-") || !strings.Contains(args[1], "/")) {
		return nil
	}
	rest := make([]string, 0, len(args))
	for _, argument := range args[1:] {
		// mount(8) passes its own -n, -s and -v on; they mean nothing here.
		if argument != "-n" && argument != "-s" && argument != "-v" {
			rest = append(rest, argument)
		}
	}
	return append([]string{"mount", "--daemon"}, rest...)
}

var errNotReady = errors.New("the mount did not come up")
