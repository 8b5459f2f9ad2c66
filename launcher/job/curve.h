#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "storage/catalog.h"
#include "trainer/checkpoints/checkpoint_committer.h"
#include "trainer/loop/train_loop.h"

namespace everstep::launcher {

// Where a job's curve is: beside its checkpoints, which lie in a directory per lineage.
std::string curve_path(const std::string& job_directory, std::uint64_t lineage);

// The loss curve of a job, one file for all who ever train on it: a line of JSON per update, ascending, each once.
//
// Whoever commits a checkpoint brings the file up to it, so it has the updates up to HEAD and no others; what was run
// after HEAD and is lost or redone never was in it. The ledger has the loss of every minibatch up to HEAD: whatever a
// committer that died has not written, the next one writes from there. Lines beyond the checkpoint that a run goes on
// from, and one that was torn, are cut off. A lock and a look at HEAD keep a committer that was overtaken away.
//
// note() is for the training's thread, follow() for the committer's.
class Curve final : public trainer::CurveSink {
 public:
  // `learning_rate` is that of an update; `job_directory` where the store's files are.
  Curve(std::string job_directory, std::uint64_t lineage, std::function<double(std::int64_t step)> learning_rate);

  // What the ledger does not know of an update of a generation that is not committed yet. Steps made again replace
  // what was known of them.
  void note(Generation generation, const trainer::StepReport& report);
  void note_validation(std::int64_t step, double loss);

  Status follow(const storage::CatalogPorts& ports, const storage::CatalogEntry& newest,
                const storage::LedgerSegment* committed) override;

 private:
  struct Noted {
    Generation generation;
    double loss = 0;
    double gradient_norm = 0;
    std::optional<double> validation_loss{};
  };
  // What the ledger knows of a window, all of it or its last part.
  struct Window {
    Generation generation;
    bool skipped = false;
    int known_from = 0;  // the first minibatch of those that `losses` are of
    std::vector<double> losses;
  };
  using Windows = std::map<std::int64_t, Window>;

  static void add_entries(const storage::LedgerSegment& segment, Windows& windows);
  std::optional<std::string> lines(std::int64_t after, std::int64_t up_to, const Windows& windows) const;
  std::optional<std::string> line(std::int64_t step, const Windows& windows) const;
  void forget_up_to(std::int64_t step);

  const std::string job_directory_;
  const std::uint64_t lineage_;
  const std::function<double(std::int64_t step)> learning_rate_;
  mutable std::mutex mutex_;
  std::map<std::int64_t, Noted> noted_;  // by step
};

}  // namespace everstep::launcher
