package main

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// parseSize reads "512MiB", "4G", "1.5GB" or plain bytes. A bare letter is
// binary (4G is 4 GiB), as in rclone, fio and systemd; "GB" is decimal.
func parseSize(text string) (int64, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return 0, fmt.Errorf("size is empty: use for example 512MiB, 4G or 1.5GB")
	}
	spelled := trimmed
	if strings.ContainsRune("kKmMgGtTpP", rune(trimmed[len(trimmed)-1])) {
		spelled += "iB"
	}
	bytes, err := humanize.ParseBytes(spelled)
	if err != nil || bytes > 1<<62 {
		return 0, fmt.Errorf("size %q is not understood: use for example 512MiB, 4G or 1.5GB", text)
	}
	return int64(bytes), nil
}

// parseRate reads "800MB/s" or "1.2GiB/s" in bytes a second; the "/s" may be
// left out.
func parseRate(text string) (int64, error) {
	bytes, err := parseSize(strings.TrimSuffix(strings.TrimSpace(text), "/s"))
	if err != nil {
		return 0, fmt.Errorf("rate %q is not understood: use for example 800MB/s or 1.2GiB/s", text)
	}
	return bytes, nil
}

// sizeFlag and rateFlag make the two usable as command line flags.
type sizeFlag int64

func (s *sizeFlag) Set(text string) error {
	bytes, err := parseSize(text)
	*s = sizeFlag(bytes)
	return err
}
func (s *sizeFlag) String() string { return humanize.IBytes(uint64(*s)) }
func (s *sizeFlag) Type() string   { return "SIZE" }

type rateFlag int64

func (r *rateFlag) Set(text string) error {
	bytes, err := parseRate(text)
	*r = rateFlag(bytes)
	return err
}
func (r *rateFlag) String() string { return humanize.Bytes(uint64(*r)) + "/s" }
func (r *rateFlag) Type() string   { return "RATE" }
