#include "launcher/job/checkpoint_request.h"
#include "launcher/job/device_options.h"
#include "launcher/job/elastic_options.h"
#include "launcher/job/plan_request.h"
#include "launcher/job/train_request.h"

namespace everstep::launcher {
namespace {

using Options = std::vector<OptionSpec>;

Options data_options() {
  return {
      {.name = "data",
       .value_name = "PATH",
       .help = "File to train on; may be left out with --emulate",
       .is_path = true,
       .on_resume = OnResume::kMayChange,  // may have moved: its digest tells whether it is the same
       .called_elsewhere = {"dataset", "data-path", "train-data"}},
      {.name = "data-format",
       .value_name = "F",
       .default_text = "auto",
       .help = "text (bytes as tokens), bin (16-bit tokens: nanoGPT; llm.c), bin32 (32-bit tokens), megatron (.bin and "
               ".idx), or auto"},
      {.name = "validation-fraction",
       .value_name = "X",
       .default_text = "0.05",
       .help = "Share of the data, at its end, that is never trained on"},
      {.name = "eval-every", .value_name = "N", .default_text = "0", .help = "Updates between validations; 0 for none"},
      {.name = "eval-minibatches", .value_name = "N", .default_text = "8", .help = "Minibatches of one validation"},
  };
}

Options update_options() {
  return {
      {.name = "steps",
       .value_name = "N",
       .default_text = "100",
       .help = "Updates to make",
       .on_resume = OnResume::kMayChange,
       .called_elsewhere = {"iterations", "max-iters", "max-steps", "train-iters", "epochs"}},
      {.name = "lr-steps",
       .value_name = "N",
       .help = "Updates until the learning rate is at its lowest; if not set, all of them",
       .on_resume = OnResume::kAnew},  // the old end stays by a rule of its own: with_stored_rate_steps
      {.name = "lr",
       .value_name = "X",
       .default_text = "0.0003",
       .help = "Highest learning rate",
       .called_elsewhere = {"learning-rate"}},
      {.name = "min-lr",
       .value_name = "X",
       .help = "Learning rate at the end; if not set, a tenth of --lr",
       .on_resume = OnResume::kMayChange},
      {.name = "lr-decay",
       .value_name = "D",
       .default_text = "cosine",
       .help = "From the highest to the lowest rate: cosine, linear or constant"},
      {.name = "warmup",
       .value_name = "X",
       .default_text = "0.05",
       .help = "Share of all samples over which the learning rate rises from 0"},
      {.name = "weight-decay",
       .value_name = "X",
       .default_text = "0.1",
       .help = "Of AdamW; norms and biases do not decay"},
      {.name = "beta1", .value_name = "X", .default_text = "0.9", .help = "Of AdamW"},
      {.name = "beta2", .value_name = "X", .default_text = "0.95", .help = "Of AdamW"},
      {.name = "clip", .value_name = "X", .default_text = "1", .help = "Largest norm of the gradient; 0 for any"},
  };
}

// Besides those that every command has that plans.
Options plan_options() {
  return {
      {.name = "workers",
       .value_name = "N",
       .help = "Processes to start on this host; auto: one for each GPU of --device, on the CPU one",
       .required = true,
       .side = OptionSide::kHost,
       .on_resume = OnResume::kMayChange,
       .called_elsewhere = {"nproc-per-node", "num-workers", "gpus"}},
      device_option(),
      transport_option(),
      {.name = "shapes",
       .value_name = "N=DxW,…",
       .help = "Depth and width to use with N workers, as they come and go; other numbers are planned",
       .on_resume = OnResume::kMayChange},
      {.name = "compare-replicas",
       .value_name = "K",
       .default_text = "10",
       .help = "Compare the replicas' weights every K updates: 1 finds every bit that flips in one that is not its "
               "owner's before it reaches a checkpoint; 0: never",
       .on_resume = OnResume::kMayChange},
      {.name = "explode",
       .value_name = "F",
       .default_text = "0",
       .help = "A gradient whose norm is more than F times the median of the last 16 is treated as one that is not "
               "finite: its window is run again, then skipped (with --etcd=none skipped at once); 0: none is",
       .on_resume = OnResume::kMayChange},
      {.name = "max-skipped-updates",
       .value_name = "N",
       .default_text = "20",
       .help = "Ends the run with an error (exit code 78) when so many updates in a row were skipped because their "
               "gradients were not finite or exploded; 0: never",
       .on_resume = OnResume::kMayChange},
  };
}

Options process_options() {
  return {
      {.name = "timeout",
       .value_name = "S",
       .default_text = "60",
       .help = "Seconds to wait for a silent worker",
       .on_resume = OnResume::kMayChange},
      {.name = "output",
       .value_name = "DIR",
       .help = "Where metrics and logs go; if not set, a new directory in runs/",
       .is_path = true,
       .side = OptionSide::kCommand,
       .on_resume = OnResume::kAnew,
       .command_line_only = true,
       .called_elsewhere = {"out-dir", "output-dir", "save"}},
      {.name = "trace",
       .value_name = "FILE",
       .help = "Also write what ran when, for ui.perfetto.dev",
       .is_path = true,
       .side = OptionSide::kCommand,
       .on_resume = OnResume::kAnew,
       .command_line_only = true},
      {.name = "json",
       .help = "Print the result as one line of JSON",
       .side = OptionSide::kCommand,
       .on_resume = OnResume::kAnew},
  };
}

}  // namespace

std::vector<OptionSpec> train_options() {
  Options all;
  for (const auto& part : {plan_options(), wish_options(), data_options(), model_options(), update_options(),
                           emulation_options(), checkpoint_options(), elastic_options(), process_options()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace everstep::launcher
