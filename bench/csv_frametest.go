package bench

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// FrametestCSV says which of the tables of tframetest are wanted, by the names
// of its options.
type FrametestCSV struct {
	Times      bool // columns for open, I/O and close too
	Frametimes bool // a table of all frames below
}

// WriteFrametestCSV writes what "tframetest --csv" prints, so that what reads
// that reads this: the same columns in the same units (nanoseconds, bytes), with
// its comma at the end of a row. Frames that were not read whole are left out: it
// has no columns for them. Times of frames are since the start of the run.
func (r *Report) WriteFrametestCSV(w io.Writer, tables FrametestCSV) error {
	header := "case,profile,threads,frames,bytes,time,fps,bps,mibps,fmin,favg,fmax"
	if tables.Times {
		header += ",omin,oavg,omax,iomin,ioavg,iomax,cmin,cavg,cmax"
	}
	if _, err := fmt.Fprintln(w, header); err != nil {
		return err
	}
	rows := r.readRows()
	if len(rows) == 0 { // it has no row then either
		return nil
	}
	var line strings.Builder
	fmt.Fprintf(&line, "%q,%q,%d,%d,%d,%d,%f,%f,%f,", "read", frametestProfile(rows), r.Clients*r.Threads,
		len(rows), r.Bytes, time.Duration(r.Seconds*float64(time.Second)).Nanoseconds(),
		float64(len(rows))/r.Seconds, float64(r.Bytes)/r.Seconds, float64(r.Bytes)/r.Seconds/(1<<20))
	parts := []func(Row) time.Duration{func(row Row) time.Duration { return row.Open + row.Read + row.Close }}
	if tables.Times {
		parts = append(parts,
			func(row Row) time.Duration { return row.Open },
			func(row Row) time.Duration { return row.Read },
			func(row Row) time.Duration { return row.Close })
	}
	for _, part := range parts {
		least, most, sum := never, time.Duration(0), time.Duration(0)
		for _, row := range rows {
			took := part(row)
			least, most, sum = min(least, took), max(most, took), sum+took
		}
		fmt.Fprintf(&line, "%d,%f,%d,", least, float64(sum)/float64(len(rows)), most)
	}
	line.WriteByte('\n')
	if tables.Frametimes {
		line.WriteString("frame,start,open,io,close,frame\n")
		for i, row := range rows {
			opened := row.Began + row.Open
			read, closed := opened+row.Read, opened+row.Read+row.Close
			fmt.Fprintf(&line, "%d,%d,%d,%d,%d,%d\n", i, row.Began, opened, read, closed, closed)
		}
	}
	_, err := io.WriteString(w, line.String())
	return err
}

// readRows are the frames that were wholly read, client by client.
func (r *Report) readRows() []Row {
	var read []Row
	for _, rows := range r.rows {
		for _, row := range rows {
			if row.Result == OutcomeOnTime || row.Result == OutcomeLate {
				read = append(read, row)
			}
		}
	}
	return read
}

// frametestProfiles are tframetest's names for the sizes of frametest, each
// with 64 KiB of header.
var frametestProfiles = map[string]string{
	"sd": "SD-32bit-cmp", "hd": "FULLHD-32bit-cmp", "2k": "2K-32bit-cmp", "4k": "4K-32bit-cmp",
}

// frametestProfile is tframetest's name for the size of the frames.
func frametestProfile(rows []Row) string {
	for _, profile := range Profiles {
		if profile.Size == rows[0].Bytes && frametestProfiles[profile.Name] != "" {
			return frametestProfiles[profile.Name]
		}
	}
	return "custom"
}
