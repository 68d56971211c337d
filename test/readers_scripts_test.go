package test

// Files of a training set.
var (
	shards  = fileSet{pattern: "shards/train-%05d-of-00240.tar", first: 0, count: 240, size: 64 << 10}
	hashed  = fileSet{pattern: "hashed/%05d.jpg", first: 0, count: 240, size: 32 << 10, scrambled: true}
	samples = fileSet{pattern: "samples/%06d.bin", first: 0, count: 4000, size: 8 << 10}
)

const pythonVersion = "python3 --version"

// stridedWorkers are processes of which each reads every n-th shard.
const stridedWorkers = `read='import glob, sys; [open(f, "rb").read() for f in sorted(glob.glob("shards/*.tar"))[int(sys.argv[1])::int(sys.argv[2])]]'
`

// takeTurns has four processes take whichever file is next.
const takeTurns = `python3 - <<'END'
import glob
from multiprocessing import Pool
def read(f): return len(open(f, "rb").read())
with Pool(4) as workers: list(workers.imap(read, sorted(glob.glob("shards/*.tar"))))
END
`

var scriptReadings = []reading{
	{
		name: "Python sorted glob", needs: "/usr/bin/python3", pkg: "python3", version: pythonVersion,
		files:   []fileSet{pngFrames},
		command: `python3 -c 'import glob; [open(f, "rb").read() for f in sorted(glob.glob("png/*.png"))]'`,
	},
	{
		name: "Python reverse", needs: "/usr/bin/python3", pkg: "python3", version: pythonVersion,
		files:   []fileSet{dpxFrames},
		command: `python3 -c 'import glob; [open(f, "rb").read() for f in sorted(glob.glob("dpx/*.dpx"), reverse=True)]'`,
	},
	{
		name: "Python 2 strided workers", needs: "/usr/bin/python3", pkg: "python3", version: pythonVersion,
		files:   []fileSet{shards},
		command: stridedWorkers + `for k in 0 1; do python3 -c "$read" $k 2 & done; wait`,
	},
	{
		name: "Python 4 strided workers", needs: "/usr/bin/python3", pkg: "python3", version: pythonVersion,
		files:   []fileSet{shards},
		command: stridedWorkers + `for k in 0 1 2 3; do python3 -c "$read" $k 4 & done; wait`,
	},
	{
		name: "Python shuffled", needs: "/usr/bin/python3", pkg: "python3", version: pythonVersion,
		files:    []fileSet{samples},
		command:  `python3 -c 'import glob, random; random.seed(1); [open(f, "rb").read() for f in random.sample(sorted(glob.glob("samples/*.bin")), 1000)]'`,
		shuffled: true, unread: 0.02,
	},
	{
		name: "Python pool of 4", needs: "/usr/bin/python3", pkg: "python3", version: pythonVersion,
		files:   []fileSet{shards},
		command: takeTurns,
		weak:    true, unread: 0.5,
	},
	{
		name: "Python order of the directory", needs: "/usr/bin/python3", pkg: "python3", version: pythonVersion,
		files:   []fileSet{hashed},
		command: `python3 -c 'import os; [open("hashed/" + f, "rb").read() for f in os.listdir("hashed")]'`,
		asGiven: true,
	},
}
