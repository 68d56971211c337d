package naming

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func benchmarkNames(kind string, count int) []string {
	names := make([]string, count)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range names {
		switch kind {
		case "padded":
			names[i] = fmt.Sprintf("shot_v002.%07d.exr", i)
		case "unpadded":
			names[i] = fmt.Sprintf("f%d.jpg", i)
		case "hex":
			names[i] = fmt.Sprintf("slice_%06x.tif", i)
		case "hashes":
			names[i] = fmt.Sprintf("%08x%08x.bin", random.Uint32(), random.Uint32())
		case "pairs":
			names[i] = fmt.Sprintf("clip_%c%c%c%c_%d.mov", 'g'+i/2%20, 'g'+i/40%20, 'g'+i/800%20, 'g'+i/16000, 1+i%2)
		}
	}
	return names
}

// BenchmarkNewListing reports build time and memory of a directory's index,
// for the kinds of names that make it large.
func BenchmarkNewListing(b *testing.B) {
	for _, kind := range []string{"padded", "unpadded", "hex", "hashes", "pairs"} {
		for _, count := range []int{30_000, 1_000_000} {
			if kind == "pairs" && count > 300_000 {
				count = 300_000
			}
			names := benchmarkNames(kind, count)
			b.Run(fmt.Sprintf("%s/%d", kind, count), func(b *testing.B) {
				var l *Listing
				for b.Loop() {
					l = NewListing(names)
				}
				b.ReportMetric(float64(l.SizeBytes())/float64(l.Len()), "bytes/name")
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/op")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func BenchmarkRuns(b *testing.B) {
	var runs []Run
	for b.Loop() {
		runs = appendRuns(runs[:0], "HS_H08_20150707_0200_B01_FLDK_R10_S0110.DAT")
	}
}
