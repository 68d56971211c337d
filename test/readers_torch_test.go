package test

import (
	"fmt"
	"os/exec"
	"testing"
)

// loadEpochs is a training loop without training: two workers, batches of 8.
const loadEpochs = `python3 - <<'END'
import glob, torch
from torch.utils.data import DataLoader, Dataset
class Samples(Dataset):
    def __init__(self): self.files = sorted(glob.glob("%s"))
    def __len__(self): return len(self.files)
    def __getitem__(self, i): return len(open(self.files[i], "rb").read())
torch.manual_seed(1)
for batch in DataLoader(Samples(), batch_size=8, shuffle=%s, num_workers=2): pass
END
`

const torchVersion = `python3 -c 'import torch; print("torch", torch.__version__)'`

var torchReadings = []reading{
	{
		name: "PyTorch DataLoader in order", needs: "/usr/bin/python3", pkg: "python3", version: torchVersion,
		files:   []fileSet{shards},
		command: fmt.Sprintf(loadEpochs, "shards/*.tar", "False"),
	},
	{
		name: "PyTorch DataLoader shuffled", needs: "/usr/bin/python3", pkg: "python3", version: torchVersion,
		files:    []fileSet{samples},
		command:  fmt.Sprintf(loadEpochs, "samples/0*0.bin", "True"),
		shuffled: true, unread: 0.02,
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
