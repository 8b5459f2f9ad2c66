#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "launcher/cli/config.h"
#include "scheduler/plan.h"
#include "storage/manifest.h"
#include "trainer/checkpoints/checkpoint.h"

namespace everstep::launcher {

// The settings of a run as its checkpoints keep them: every option of `everstep train`, empty if it is not set, and
// "data-digest", which stands for the data itself. Where the learning rate ends is always told: a longer run that goes
// on from there must not bend it.
storage::Settings stored_settings(const Config& config, const std::string& data_digest);

// With the --lr-steps of the checkpoint if none is set.
Config with_stored_rate_steps(Config config, const storage::Settings& stored);

// `event=learning_rate_end_changed old=… new=…` if the configuration sets another end than the checkpoint has.
std::optional<std::string> rate_steps_event(const Config& config, const storage::Settings& stored);

// Refuses to go on under other settings than those that decide what is computed, naming option, old and new value of
// all that differ. May differ: how long to train, where the learning rate ends, the plan and its workers,
// recomputation, files, logs and checkpoints; each option says so itself (OnResume). What the checkpoint does not know
// (an imported one) is not compared.
Status check_same_settings(const storage::Settings& stored, const storage::Settings& now);

// Whether two texts of one setting mean the same: 0.10 is 0.1.
bool is_same_value(const std::string& a, const std::string& b);

// "--lr (was 0.1, is 0.2)", for people.
std::string setting_difference(const std::string& name, const std::string& old_value, const std::string& new_value);

// Where the trainer goes on from that checkpoint under that plan.
trainer::ResumePoint resume_point(const storage::Manifest& manifest, const scheduler::Plan& plan);

}  // namespace everstep::launcher
