#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

namespace everstep::elastic {

// Tries of one and the same generation number are told apart by a random number: connections and keys of a try that
// was given up never meet those of the next.
struct Attempt {
  Generation generation;
  std::uint32_t nonce = 0;

  auto operator<=>(const Attempt&) const = default;  // NOLINT(modernize-use-nullptr)
};

// "3-9f3a11c2", the nonce as hex_text writes it
std::string to_string(const Attempt& attempt);

// The keys of one job; docs/protocol.md says who writes which when. `job` has passed check_job_name.
class Keys {
 public:
  explicit Keys(std::string_view job);

  const std::string& prefix() const { return prefix_; }  // "/everstep/v1/jobs/<job>/"
  // Everything that the protocol looks at lies below it; history (generations, log of HEADs) does not.
  std::string live() const { return prefix_ + "live/"; }

  std::string spec() const { return live() + "spec"; }
  std::string leader() const { return live() + "leader"; }
  std::string members() const { return live() + "members/"; }
  std::string member(const WorkerId& id) const { return members() + to_string(id); }
  std::string generation() const { return live() + "gen"; }
  std::string head() const { return live() + "ckpt/HEAD"; }
  std::string abandoned_save() const { return live() + "ckpt/abandoned"; }
  std::string proposal() const { return live() + "proposal"; }
  std::string prepared(const Attempt& attempt) const { return live() + "prepared/" + to_string(attempt) + "/"; }
  std::string prepared(const Attempt& attempt, const WorkerId& id) const { return prepared(attempt) + to_string(id); }
  std::string drain() const { return live() + "drain"; }
  std::string promises(const Attempt& attempt) const { return live() + "promise/" + to_string(attempt) + "/"; }
  std::string promise(const Attempt& attempt, const WorkerId& id) const { return promises(attempt) + to_string(id); }
  std::string held(const Attempt& attempt) const { return live() + "held/" + to_string(attempt) + "/"; }
  std::string held(const Attempt& attempt, const WorkerId& id) const { return held(attempt) + to_string(id); }
  std::string ready(const Attempt& attempt) const { return live() + "ready/" + to_string(attempt) + "/"; }
  std::string ready(const Attempt& attempt, const WorkerId& id) const { return ready(attempt) + to_string(id); }
  std::string suspects(const Attempt& attempt) const { return live() + "suspect/" + to_string(attempt) + "/"; }
  std::string suspect(const Attempt& attempt, const WorkerId& who, const WorkerId& by) const {
    return suspects(attempt) + to_string(who) + "/" + to_string(by);
  }
  // Of all attempts: what a new generation sweeps away.
  std::string all_prepared() const { return live() + "prepared/"; }
  std::string all_promises() const { return live() + "promise/"; }
  std::string all_held() const { return live() + "held/"; }
  std::string all_ready() const { return live() + "ready/"; }
  std::string all_suspects() const { return live() + "suspect/"; }
  std::string acks() const { return live() + "ack/"; }
  std::string acks(const Attempt& attempt, std::string_view checkpoint) const {
    return acks() + to_string(attempt) + "/" + std::string(checkpoint) + "/";
  }
  std::string ack(const Attempt& attempt, std::string_view checkpoint, const WorkerId& id) const {
    return acks(attempt, checkpoint) + to_string(id);
  }
  std::string quarantines() const { return live() + "quarantine/"; }
  std::string quarantine(std::string_view host) const { return quarantines() + std::string(host); }
  std::string finished() const { return live() + "finished"; }

  // What people ask for, and what is shown to them; nothing of it decides anything.
  std::string drain_request(const WorkerId& id) const { return live() + "ask/drain/" + to_string(id); }
  std::string stop_request() const { return live() + "ask/stop"; }
  std::string scale_request() const { return live() + "ask/scale"; }
  std::string progress() const { return live() + "progress"; }

  std::string past_generation(Generation generation) const;  // "gens/<20 digits>"
  std::string past_generations() const { return prefix_ + "gens/"; }
  std::string past_head(std::int64_t sequence) const;  // "ckpt-log/<20 digits>"
  std::string past_heads() const { return prefix_ + "ckpt-log/"; }

 private:
  std::string prefix_;
};

// Of past generations and HEADs so many are kept: what is older only files tell.
inline constexpr std::int64_t kKeptHistory = 1000;

// "/everstep/v1/jobs/": what `everstep status` without a job lists.
inline constexpr std::string_view kAllJobs = "/everstep/v1/jobs/";

}  // namespace everstep::elastic
