#include "launcher/elastic/elastic_options.h"
#include "launcher/train/checkpoint_request.h"
#include "launcher/train/train_request.h"
#include "scheduler/model_shape.h"

namespace everstep::launcher {
namespace {

using Options = std::vector<OptionSpec>;

std::string list_models() {
  std::string list;
  for (const scheduler::ModelShape& model : scheduler::named_models()) list += (list.empty() ? "" : ", ") + model.name;
  return list;
}

Options model_options() {
  return {
      {.name = "model", .value_name = "NAME", .default_text = "gpt2-tiny", .help = "Sizes: " + list_models()},
      {.name = "layers", .value_name = "N", .help = "Transformer blocks, instead of the model's"},
      {.name = "hidden", .value_name = "N", .help = "Width of the model, instead of the model's"},
      {.name = "heads", .value_name = "N", .help = "Attention heads, instead of the model's"},
      {.name = "sequence", .value_name = "N", .help = "Tokens per sequence, instead of the model's"},
      {.name = "vocabulary", .value_name = "N", .help = "Token ids, instead of the model's"},
      {.name = "next-sentence", .help = "BERT: also learn whether the second sentence follows the first"},
      {.name = "dropout", .value_name = "X", .default_text = "0.1", .help = "Share of activations to drop"},
      {.name = "precision", .value_name = "P", .default_text = "fp32", .help = "fp32, or bf16 with an fp32 master"},
      {.name = "recompute", .help = "Keep only the inputs of blocks and run forwards again: slower, less memory"},
      {.name = "seed", .value_name = "N", .default_text = "1", .help = "Seed of all random numbers"},
  };
}

Options data_options() {
  return {
      {.name = "data", .value_name = "PATH", .help = "File to train on; may be left out with --emulate"},
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
      {.name = "window", .value_name = "M", .default_text = "16", .help = "Minibatches per update, over all workers"},
      {.name = "minibatch", .value_name = "B", .default_text = "4", .help = "Sequences per minibatch"},
      {.name = "steps", .value_name = "N", .default_text = "100", .help = "Updates to make"},
      {.name = "lr-steps",
       .value_name = "N",
       .help = "Updates until the learning rate is at its lowest; if not set, all of them"},
      {.name = "lr", .value_name = "X", .default_text = "0.0003", .help = "Highest learning rate"},
      {.name = "min-lr", .value_name = "X", .help = "Learning rate at the end; if not set, a tenth of --lr"},
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
      {.name = "reproducible", .help = "Sum gradients so that no plan changes a bit"},
      {.name = "stash", .help = "AMDP: keep the old weights too, so that a backward uses those of its forward"},
  };
}

Options plan_options() {
  return {
      {.name = "workers", .value_name = "N", .help = "Processes to start on this host", .required = true},
      {.name = "schedule",
       .value_name = "KIND",
       .help = "amdp, amdp-sync, 1f1b, two-directions, gpipe or interleaved; if not set, the fastest"},
      {.name = "depth", .value_name = "D", .help = "Workers of one group; if not set, the fastest"},
      {.name = "pipelines", .value_name = "P", .help = "What schedule and depth must come to"},
      {.name = "width", .value_name = "W", .help = "Groups; if not set, the fastest"},
      {.name = "shapes",
       .value_name = "N=DxW,…",
       .help = "Depth and width to use with N workers, as they come and go; other numbers are planned"},
      {.name = "synchronous", .help = "No minibatch may meet two weight versions"},
      {.name = "redundancy",
       .value_name = "K",
       .default_text = "1",
       .help = "So many workers may be lost at once without going back to a checkpoint: costs memory for one more "
               "copy of what each worker owns, and two on each of K others; 0: none"},
      {.name = "compare-replicas",
       .value_name = "K",
       .default_text = "10",
       .help = "Compare the replicas' weights every K updates: 1 finds every bit that flips in one that is not its "
               "owner's before it reaches a checkpoint; 0: never"},
      {.name = "explode",
       .value_name = "F",
       .default_text = "0",
       .help = "A gradient whose norm is more than F times the median of the last 16 is treated as one that is not "
               "finite: its window is run again, then skipped (with --etcd=none skipped at once); 0: none is"},
      {.name = "max-skipped-updates",
       .value_name = "N",
       .default_text = "20",
       .help = "Ends the run with an error (exit code 78) when so many updates in a row were skipped because their "
               "gradients were not finite or exploded; 0: never"},
      {.name = "memory-gib",
       .value_name = "X",
       .help = "Memory of one worker for training; if not set, an equal share of the host's"},
      {.name = "emulate",
       .value_name = "F:B",
       .help = "Wait F ms per forward and B ms per backward of a stage instead of computing; model:F:B: of the whole "
               "model, of which each stage takes its part"},
  };
}

Options process_options() {
  return {
      {.name = "bind", .value_name = "ADDRESS", .default_text = "127.0.0.1", .help = "Where workers listen for peers"},
      {.name = "port",
       .value_name = "N",
       .default_text = "0",
       .help = "Where worker 0 listens, the others behind it; 0 for any free ports"},
      {.name = "timeout", .value_name = "S", .default_text = "60", .help = "Seconds to wait for a silent worker"},
      {.name = "output",
       .value_name = "DIR",
       .help = "Where metrics and logs go; if not set, a new directory in runs/",
       .command_line_only = true},
      {.name = "trace",
       .value_name = "FILE",
       .help = "Also write what ran when, for ui.perfetto.dev",
       .command_line_only = true},
      {.name = "json", .help = "Print the result as one line of JSON"},
  };
}

}  // namespace

std::vector<OptionSpec> train_options() {
  Options all;
  for (const auto& part : {plan_options(), data_options(), model_options(), update_options(), checkpoint_options(),
                           elastic_options(), process_options()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace everstep::launcher
