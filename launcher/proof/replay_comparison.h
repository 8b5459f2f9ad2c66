#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "launcher/job/checkpoint_store.h"
#include "trainer/reference/reference_run.h"

namespace everstep::launcher {

// How close a replay must come: to the bit, unless the run summed floats in an order of its own.
inline constexpr double kLossTolerance = 1e-4;   // relative
inline constexpr double kStateTolerance = 1e-2;  // of the norm of a block's weights, moments or gradients

// "0x1.8p+1"
std::string hex_float(double value);

// The first difference, for people; nothing if there is none.
using Difference = std::optional<std::string>;

Difference compare_losses(const std::vector<double>& committed, const std::vector<double>& replayed,
                          const trainer::HistoryEntry& entry, bool exact);

// Whether the update was rightly applied or skipped. With float sums a skip proves nothing: they may overflow in
// another order.
Difference compare_update(const trainer::HistoryEntry& entry, const trainer::ReferenceStep::Update& update, bool exact);

// Loads the state of a checkpoint and compares all of it.
Result<Difference> compare_state(CheckpointStore& store, const storage::Manifest& manifest,
                                 const trainer::TrainOptions& options, const trainer::ReferenceRun& run, bool exact);

// The buffers of a block that a checkpoint of that kind has a part of.
trainer::StageState stored_part(const storage::Manifest& manifest, trainer::StageState state);

}  // namespace everstep::launcher
