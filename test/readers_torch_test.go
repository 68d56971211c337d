package test

import (
	"fmt"
	"os/exec"
	"testing"
)

// loadEpochs is a training loop without training: two workers, batches of 8,
// files and order as told.
const loadEpochs = `python3 - <<'END'
import glob, torch
from torch.utils.data import DataLoader, Dataset
torch.manual_seed(1)
files = sorted(glob.glob("%s"))
order = %s
%s
class Samples(Dataset):
    def __len__(self): return len(files)
    def __getitem__(self, i): return len(open(files[i], "rb").read())
for batch in DataLoader(Samples(), batch_size=8, sampler=order, num_workers=2): pass
END
`

const (
	inOrder  = `list(range(len(files)))`
	shuffled = `torch.randperm(len(files)).tolist()`
	announce = `with open(".reelahead/hints", "w") as hints: hints.writelines(files[i] + "\n" for i in order)`
)

const torchVersion = `python3 -c 'import torch; print("torch", torch.__version__)'`

var torchReadings = []reading{
	{
		name: "PyTorch DataLoader", needs: "/usr/bin/python3", pkg: "python3", version: torchVersion,
		files:   []fileSet{shards},
		command: fmt.Sprintf(loadEpochs, "shards/*.tar", inOrder, ""),
	},
	{
		name: "PyTorch DataLoader shuffled", needs: "/usr/bin/python3", pkg: "python3", version: torchVersion,
		files:    []fileSet{samples},
		command:  fmt.Sprintf(loadEpochs, "samples/000*.bin", shuffled, ""),
		shuffled: true, unread: 0.02,
	},
	{
		name: "PyTorch DataLoader announced", needs: "/usr/bin/python3", pkg: "python3", version: torchVersion,
		files:   []fileSet{samples},
		command: fmt.Sprintf(loadEpochs, "samples/000*.bin", shuffled, announce),
	},
}

// TestTorchReaders is TestRealReaders for PyTorch's data loader.
func TestTorchReaders(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("/usr/bin/python3", "-c", "import torch").CombinedOutput(); err != nil {
		t.Skipf("needs PyTorch (package python3-torch): %v %s", err, out)
	}
	playReadings(t, torchReadings)
}
