#include "launcher/proof/replay_spec.h"

#include "launcher/job/device_options.h"
#include "launcher/job/job_directory.h"

namespace everstep::launcher {

CommandSpec replay_spec() {
  CommandSpec spec;
  spec.name = "replay";
  spec.summary = "Re-run a job's history on one process and compare every bit";
  spec.text =
      "Trains again what the ledger of a job says was trained: in one process and one thread, minibatch after "
      "minibatch, each with the versions of the weights that its plan gave it. Compares every committed loss, every "
      "update that was skipped, and weights, moments and gradients of every checkpoint that is kept on the way. Says "
      "from which step to which it went, and ends with exit code 65 at the first difference, or if HEAD or a "
      "checkpoint on the way is damaged, and says where. Runs without --reproducible are compared within a tolerance, "
      "since the order of their sums is their plan's. What GPUs computed has equal bits only on such a GPU: see "
      "--device.";
  spec.examples = {"everstep replay checkpoints", "everstep replay checkpoints --to=40",
                   "everstep replay checkpoints --from=100 --to=120 --data=/mnt/corpus.txt",
                   "everstep replay checkpoints --device=cuda"};
  spec.options = job_directory_options({
      {.name = "to",
       .value_name = "STEP",
       .help = "Ends at the newest checkpoint of that step or before; else at HEAD"},
      {.name = "from", .value_name = "STEP", .help = "Starts at the newest checkpoint of that step or before"},
      {.name = "data", .value_name = "FILE", .help = "Where the data is now, if it has moved since"},
      {.name = "device",
       .value_name = "D",
       .default_text = kHostDevice,
       .help = "What to compute on: cpu, cuda (the first GPU), cuda:N (that one), or auto (a GPU if there is one)"},
  });
  spec.positional = job_directory_argument();
  return spec;
}

}  // namespace everstep::launcher
