#include "launcher/doctor/questions.h"

#include "base/text.h"
#include "launcher/cli/files.h"
#include "launcher/cli/host.h"
#include "launcher/cli/signal_watch.h"
#include "launcher/worker/doctor/doctor_role.h"
#include "storage/json/json_reader.h"

namespace everstep::launcher::doctor {
namespace {

constexpr std::chrono::minutes kAnswersWithin{5};
constexpr std::size_t kLongestAnswer = std::size_t{1} << 24;

}  // namespace

std::filesystem::path log_of(const Place& place, const std::string& part) { return place.directory / (part + ".log"); }

Result<storage::Json> ask(const Place& place, const std::string& part) {
  const auto log = log_of(place, part);
  auto program = ChildProcess::start({sibling_program("everstep-worker"), std::string(kDoctorRole), part,
                                      place.device_text(), place.directory.string()},
                                     log);
  if (!program) return program.error();
  const std::string who = "everstep-worker doctor " + part;
  const Status ended = wait_for_end(*program, kAnswersWithin);
  if (!ended && ended.error().code == ErrorCode::kCancelled) return ended.error();
  if (!ended) return Error{ended.error().code, who + ": " + ended.error().message, "look at " + log.string()};
  const auto text = read_file(log.string(), kLongestAnswer);
  if (!text) return text.error();
  const std::string_view last = last_line(*text);
  if (*program->wait_status() != 0) {
    return Error{ErrorCode::kUnavailable,
                 who + " ended with " + end_text(*program->wait_status()) + ", and said last: " + std::string(last),
                 "docs/gpu.md says which libraries it needs"};
  }
  auto answer = storage::parse_json(last);
  if (!answer) return Error{ErrorCode::kInternal, who + " did not answer", "look at " + log.string()};
  const storage::JsonReader reader(*answer);
  if (const auto error = reader.text_at("error"))
    return not_found(*error, reader.text_at("hint") ? *reader.text_at("hint") : "");
  return answer;
}

}  // namespace everstep::launcher::doctor
