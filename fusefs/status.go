package fusefs

import (
	"os"
	"time"

	"reelahead/prefetch"
)

// Status is what a mount tells of itself: totals since it was mounted, in
// bytes and opens.
type Status struct {
	Source      string  `json:"source"`
	Mountpoint  string  `json:"mountpoint"`
	Passthrough bool    `json:"passthrough"` // ready frames are read without this process
	Prefetch    bool    `json:"prefetch"`
	PID         int     `json:"pid"`
	Seconds     float64 `json:"seconds"` // since the mount

	Opens         int64 `json:"opens"`          // of regular files, for reading
	OpensReady    int64 `json:"opens_ready"`    // the whole file was in the cache
	OpensInflight int64 `json:"opens_inflight"` // it was on its way
	OpensCold     int64 `json:"opens_cold"`     // served by the source
	OpensExpected int64 `json:"opens_expected"` // predicted at least one open before

	// BytesRead counts what applications read through this process, and a ready
	// frame that is read past it as read once, whole, at each open.
	BytesRead          int64 `json:"bytes_read"`
	BytesFetched       int64 `json:"bytes_fetched"`
	BytesSource        int64 `json:"bytes_source"` // read from the source by this process
	BytesFetchedUnread int64 `json:"bytes_fetched_unread"`
	CacheBytes         int64 `json:"cache_bytes"`
	CacheBytesPeak     int64 `json:"cache_bytes_peak"`
	CacheLimit         int64 `json:"cache_limit"`
	SourceErrors       int64 `json:"source_errors"`
	SourceReads        int   `json:"source_reads"`       // under way now
	SourceReadsLimit   int   `json:"source_reads_limit"` // at once
	DaemonReads        int64 `json:"daemon_reads"`       // READ requests this process answered

	Streams []prefetch.StreamStatus `json:"streams"`
}

func (fs *fileSystem) status() Status {
	c := fs.engine.Counters()
	return Status{
		Source:             fs.options.Source,
		Mountpoint:         fs.options.Mountpoint,
		Passthrough:        fs.passthrough,
		Prefetch:           !fs.options.Engine.Disabled,
		PID:                os.Getpid(),
		Seconds:            time.Since(fs.started).Seconds(),
		Opens:              fs.opens.all.Load(),
		OpensReady:         fs.opens.ready.Load(),
		OpensInflight:      fs.opens.inflight.Load(),
		OpensCold:          fs.opens.cold.Load(),
		OpensExpected:      fs.opens.expected.Load(),
		BytesRead:          fs.opens.bytesRead.Load(),
		BytesFetched:       c.BytesFetched,
		BytesSource:        c.BytesSource,
		BytesFetchedUnread: c.BytesFetchedUnread,
		CacheBytes:         c.CacheBytes,
		CacheBytesPeak:     c.CacheBytesPeak,
		CacheLimit:         c.CacheLimit,
		SourceErrors:       c.SourceErrors,
		SourceReads:        c.Inflight,
		SourceReadsLimit:   c.InflightLimit,
		DaemonReads:        fs.opens.daemonReads.Load(),
		Streams:            fs.engine.Streams(),
	}
}
