package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memory returns what the machine can give now and what it has in all, in
// bytes, both bounded by the control group's limit.
func memory() (available, total int64, err error) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, 0, fmt.Errorf("size of the memory: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "MemTotal:":
			total = kilobytes << 10
		case "MemAvailable:":
			available = kilobytes << 10
		}
	}
	if limit, ok := controlGroupLimit(); ok {
		available, total = min(available, limit), min(total, limit)
	}
	return available, total, lines.Err()
}

// controlGroupLimit reads memory.max of this process's control group (version
// 2) and of those above it.
func controlGroupLimit() (int64, bool) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	lowest, found := int64(0), false
	for _, line := range strings.Split(string(own), "\n") {
		group, ok := strings.CutPrefix(line, "0::")
		if !ok {
			continue
		}
		for dir := filepath.Join("/sys/fs/cgroup", group); strings.HasPrefix(dir, "/sys/fs/cgroup"); dir = filepath.Dir(dir) {
			text, err := os.ReadFile(filepath.Join(dir, "memory.max"))
			if err != nil {
				continue
			}
			limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && (!found || limit < lowest) {
				lowest, found = limit, true
			}
		}
	}
	return lowest, found
}
