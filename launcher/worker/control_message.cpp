#include "launcher/worker/control_message.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "base/text.h"
#include "launcher/cli/json_number.h"
#include "storage/json/json_reader.h"

namespace everstep::launcher {
namespace {

using storage::Json;
using storage::JsonReader;
using trainer::StepReport;

constexpr std::array kErrorCodes{ErrorCode::kInvalidArgument,  ErrorCode::kNotFound,        ErrorCode::kUnavailable,
                                 ErrorCode::kDeadlineExceeded, ErrorCode::kStaleGeneration, ErrorCode::kDataLoss,
                                 ErrorCode::kCancelled,        ErrorCode::kInternal};

constexpr std::array<std::string_view, 3> kVerdicts{"committed", "abandoned", "unknown"};

Json typed(std::string_view type) { return Json::object().set("type", type); }

Json to_json(const Hello& hello) {
  Json libraries = Json::object();
  for (const auto& [name, value] : hello.libraries) libraries.set(name, value);
  return typed("hello")
      .set("setup", hello.setup)
      .set("address", to_hex(hello.address))
      .set("libraries", std::move(libraries));
}

Json to_json(const Alive&) { return typed("alive"); }

Json with_report(Json json, const StepReport& report) {
  json.set("step", report.step).set("at", report.at).set("skipped", report.skipped);
  json.set("norm_limit", report.norm_limit).set("skipped_in_all", report.skipped_in_all);
  json.set("skipped_in_a_row", report.skipped_in_a_row);
  json.set("loss", finite_or_null(report.loss)).set("gradient_norm", finite_or_null(report.gradient_norm));
  json.set("learning_rate", finite_or_null(report.learning_rate)).set("busy", finite_or_null(report.busy));
  return json;
}

Json to_json(const StepReport& report) { return with_report(typed("step"), report); }

Json to_json(const ElasticStep& step) {
  return with_report(typed("elastic_step").set("generation", step.generation.value), step.report);
}

Json to_json(const GenerationChanged& change) {
  Json json = typed("generation");
  json.set("generation", change.generation.value).set("plan", change.plan).set("workers", change.workers);
  json.set("spares", change.spares).set("reason", change.reason).set("base", change.origin).set("step", change.step);
  json.set("detect", change.phases.detect).set("agree", change.phases.agree).set("connect", change.phases.connect);
  json.set("move", change.phases.move).set("first_step", change.phases.first_step);
  return json.set("stall", change.stall).set("redone", change.redone);
}

Json to_json(const WorkerNote& note) { return typed("note").set("event", note.event); }

Json to_json(const Validation& validation) {
  return typed("validation").set("step", validation.step).set("loss", finite_or_null(validation.loss));
}

Json to_json(const Finished& finished) {
  return typed("finished")
      .set("steps", finished.steps)
      .set("skipped", finished.skipped)
      .set("peak_bytes", finished.peak_bytes);
}

Json with_error(Json json, const Error& error) {
  return json.set("code", to_string(error.code)).set("message", error.message).set("hint", error.hint);
}

Json to_json(const Error& error) { return with_error(typed("error"), error); }

Json to_json(const trainer::ShardSaved& saved) {
  return typed("shard_saved")
      .set("checkpoint", to_string(saved.checkpoint))
      .set("shard", to_string(saved.shard))
      .set("seconds", saved.seconds);
}

Json to_json(const trainer::SaveFailed& failed) {
  return with_error(typed("save_failed").set("checkpoint", to_string(failed.checkpoint)), failed.error);
}

Json to_json(const trainer::SaveSkipped& skipped) {
  return typed("save_skipped").set("position", skipped.position.value);
}

Json to_json(const trainer::Verdict& verdict) {
  return typed("verdict")
      .set("checkpoint", to_string(verdict.checkpoint))
      .set("kind", kVerdicts.at(static_cast<std::size_t>(verdict.kind)));
}

Json to_json(const Start& start) {
  Json addresses = Json::array();
  for (const std::string& address : start.addresses) addresses.append(to_hex(address));
  return typed("start").set("addresses", std::move(addresses));
}

Json to_json(const Stop&) { return typed("stop"); }

template <typename Message>
std::string text_of(const Message& message) {
  return std::visit([](const auto& one) { return storage::to_text(to_json(one), 0); }, message);
}

// Reads members one after the other and remembers the first one that is missing or of another type.
class Members {
 public:
  explicit Members(const Json& json) : reader_(json) {}

  std::string text(std::string_view name) { return take(reader_.text_at(name)); }
  std::int64_t integer(std::string_view name) { return take(reader_.integer_at(name)); }
  bool boolean(std::string_view name) { return take(reader_.boolean_at(name)); }

  double number(std::string_view name) {
    const Json* value = reader_.json().find(name);
    if (value != nullptr && *value == Json(nullptr)) return std::numeric_limits<double>::quiet_NaN();
    return take(reader_.number_at(name));
  }

  // Bytes that are no text travel as hexadecimal digits.
  std::string bytes(std::string_view name) {
    const auto member = reader_.member(name);
    if (member) return bytes_of(*member);
    status_ = member.error();
    return {};
  }

  std::vector<std::string> list_of_bytes(std::string_view name) {
    std::vector<std::string> list;
    for (const JsonReader& element : take(reader_.elements_at(name))) {
      list.push_back(bytes_of(element));
    }
    return list;
  }

  storage::CheckpointName checkpoint(std::string_view name) {
    return parsed<storage::CheckpointName>(name, "a checkpoint's name", storage::parse_checkpoint_name);
  }

  storage::WriterTag writer(std::string_view name) {
    return parsed<storage::WriterTag>(name, "a writer's tag", storage::parse_writer_tag);
  }

  trainer::Verdict::Kind verdict(std::string_view name) {
    return parsed<trainer::Verdict::Kind>(
        name, "a verdict", [](std::string_view text) -> std::optional<trainer::Verdict::Kind> {
          const auto* const found = std::find(kVerdicts.begin(), kVerdicts.end(), text);
          if (found == kVerdicts.end()) return std::nullopt;
          return static_cast<trainer::Verdict::Kind>(found - kVerdicts.begin());
        });
  }

  storage::Settings settings(std::string_view name) {
    storage::Settings settings;
    const Json* value = reader_.json().find(name);
    const auto* members = value == nullptr ? nullptr : std::get_if<Json::Object>(&value->value());
    if (members == nullptr) {
      refuse(reader_.error("expected an object " + std::string(name)));
      return settings;
    }
    for (const storage::JsonMember& member : *members) {
      settings.emplace_back(member.name, take(JsonReader(member.value).text()));
    }
    return settings;
  }

  const Status& status() const { return status_; }

 private:
  void refuse(Error error) {
    if (status_) status_ = std::move(error);
  }

  template <typename Value, typename Parse>
  Value parsed(std::string_view name, std::string_view what, Parse parse) {
    const std::optional<Value> value = parse(text(name));
    if (!value) refuse(reader_.error("expected " + std::string(what) + " as " + std::string(name)));
    return value.value_or(Value{});
  }

  template <typename T>
  T take(Result<T> value) {
    if (value) return *std::move(value);
    refuse(value.error());
    return T{};
  }

  std::string bytes_of(const JsonReader& value) {
    auto bytes = from_hex(take(value.text()));
    if (!bytes) refuse(value.error("expected hexadecimal digits"));
    return std::move(bytes).value_or("");
  }

  JsonReader reader_;
  Status status_;
};

StepReport read_step(Members& members) {
  StepReport report;
  report.step = members.integer("step");
  report.at = members.integer("at");
  report.skipped = members.boolean("skipped");
  report.norm_limit = members.number("norm_limit");
  report.skipped_in_all = members.integer("skipped_in_all");
  report.skipped_in_a_row = members.integer("skipped_in_a_row");
  report.loss = members.number("loss");
  report.gradient_norm = members.number("gradient_norm");
  report.learning_rate = members.number("learning_rate");
  report.busy = members.number("busy");
  return report;
}

GenerationChanged read_change(Members& members) {
  GenerationChanged change;
  change.generation = {members.integer("generation")};
  change.plan = members.text("plan");
  change.workers = static_cast<int>(members.integer("workers"));
  change.spares = static_cast<int>(members.integer("spares"));
  change.reason = members.text("reason");
  change.origin = members.text("base");
  change.step = members.integer("step");
  change.phases.detect = members.number("detect");
  change.phases.agree = members.number("agree");
  change.phases.connect = members.number("connect");
  change.phases.move = members.number("move");
  change.phases.first_step = members.number("first_step");
  change.stall = members.number("stall");
  change.redone = members.integer("redone");
  return change;
}

Error read_error(Members& members) {
  Error error{ErrorCode::kInternal, members.text("message"), members.text("hint")};
  const std::string code = members.text("code");
  for (const ErrorCode known : kErrorCodes) {
    if (to_string(known) == code) error.code = known;
  }
  return error;
}

Error unreadable(std::string_view why) {
  return {ErrorCode::kInternal, "a control message makes no sense: " + std::string(why), "please report it"};
}

// Parses the text and hands its type and members to `read`, which returns nothing for an unknown type.
template <typename Message, typename Read>
Result<Message> decode(std::string_view text, Read read) {
  const auto json = storage::parse_json(text);
  if (!json) return unreadable(json.error().message);
  Members members(*json);
  const std::string type = members.text("type");
  std::optional<Message> message = read(type, members);
  if (!members.status()) return unreadable(members.status().error().message);
  if (!message) return unreadable("unknown type '" + type + "'");
  return *std::move(message);
}

}  // namespace

std::string encode(const FromWorker& message) { return text_of(message); }
std::string encode(const ToWorker& message) { return text_of(message); }

Result<FromWorker> decode_from_worker(std::string_view text) {
  return decode<FromWorker>(text, [](const std::string& type, Members& members) -> std::optional<FromWorker> {
    if (type == "hello") return Hello{members.text("setup"), members.bytes("address"), members.settings("libraries")};
    if (type == "alive") return Alive{};
    if (type == "step") return read_step(members);
    if (type == "elastic_step") return ElasticStep{{members.integer("generation")}, read_step(members)};
    if (type == "generation") return read_change(members);
    if (type == "note") return WorkerNote{members.text("event")};
    if (type == "validation") return Validation{members.integer("step"), members.number("loss")};
    if (type == "finished") {
      return Finished{members.integer("steps"), members.integer("skipped"), members.integer("peak_bytes")};
    }
    if (type == "shard_saved") {
      return trainer::ShardSaved{members.checkpoint("checkpoint"), members.writer("shard"), members.number("seconds")};
    }
    if (type == "save_failed") return trainer::SaveFailed{members.checkpoint("checkpoint"), read_error(members)};
    if (type == "save_skipped") return trainer::SaveSkipped{{members.integer("position")}};
    if (type == "error") return read_error(members);
    return std::nullopt;
  });
}

Result<ToWorker> decode_to_worker(std::string_view text) {
  return decode<ToWorker>(text, [](const std::string& type, Members& members) -> std::optional<ToWorker> {
    if (type == "start") return Start{members.list_of_bytes("addresses")};
    if (type == "stop") return Stop{};
    if (type == "verdict") return trainer::Verdict{members.checkpoint("checkpoint"), members.verdict("kind")};
    return std::nullopt;
  });
}

}  // namespace everstep::launcher
