package bench

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"
)

// csvHeader names the columns of WriteCSV. Times are in milliseconds since the
// start of the run.
var csvHeader = []string{
	"client", "k", "frame", "path", "result", "due_ms", "began_ms", "done_ms",
	"open_ms", "read_ms", "close_ms", "bytes", "error", "first_byte_ms", "own_error_ms",
}

// WriteCSV writes one row for each frame, client by client. Cells of what did
// not happen are empty: a skipped frame was not read, the frames of an unpaced
// run were not due.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvHeader); err != nil {
		return err
	}
	for client, rows := range r.rows {
		for _, row := range rows {
			if err := out.Write(csvRow(client, row)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func csvRow(client int, row Row) []string {
	ms := func(d time.Duration) string { return strconv.FormatFloat(milliseconds(d), 'f', 3, 64) }
	cells := []string{
		strconv.Itoa(client), strconv.Itoa(row.K), strconv.Itoa(row.Frame.Number), row.Frame.Path, string(row.Result),
		"", "", "", "", "", "", "", "", "", "",
	}
	if row.Due > 0 {
		cells[5] = ms(row.Due)
	}
	if row.Result != OutcomeSkipped {
		copy(cells[6:], []string{
			ms(row.Began), ms(row.Done), ms(row.Open), ms(row.Read), ms(row.Close), strconv.FormatInt(row.Bytes, 10),
		})
		cells[13], cells[14] = ms(row.First), ms(row.Own)
	}
	if row.Err != nil {
		cells[12] = row.Err.Error()
	}
	return cells
}
