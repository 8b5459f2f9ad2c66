#include "launcher/train/control_message.h"

#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "base/text.h"
#include "launcher/train/json_number.h"
#include "storage/json/json_reader.h"

namespace everstep::launcher {
namespace {

using storage::Json;
using storage::JsonReader;
using trainer::StepReport;

constexpr std::array kErrorCodes{ErrorCode::kInvalidArgument,  ErrorCode::kNotFound,        ErrorCode::kUnavailable,
                                 ErrorCode::kDeadlineExceeded, ErrorCode::kStaleGeneration, ErrorCode::kDataLoss,
                                 ErrorCode::kCancelled,        ErrorCode::kInternal};

Json typed(std::string_view type) { return Json::object().set("type", type); }

Json to_json(const Hello& hello) {
  return typed("hello").set("setup", hello.setup).set("address", to_hex(hello.address));
}

Json to_json(const Alive&) { return typed("alive"); }

Json to_json(const StepReport& report) {
  Json json = typed("step");
  json.set("step", report.step).set("at", report.at).set("skipped", report.skipped);
  json.set("loss", finite_or_null(report.loss)).set("gradient_norm", finite_or_null(report.gradient_norm));
  json.set("learning_rate", finite_or_null(report.learning_rate)).set("busy", finite_or_null(report.busy));
  return json;
}

Json to_json(const Validation& validation) {
  return typed("validation").set("step", validation.step).set("loss", finite_or_null(validation.loss));
}

Json to_json(const Finished& finished) {
  return typed("finished")
      .set("steps", finished.steps)
      .set("skipped", finished.skipped)
      .set("peak_bytes", finished.peak_bytes);
}

Json to_json(const Error& error) {
  return typed("error").set("code", to_string(error.code)).set("message", error.message).set("hint", error.hint);
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

  const Status& status() const { return status_; }

 private:
  template <typename T>
  T take(Result<T> value) {
    if (value) return *std::move(value);
    if (status_) status_ = value.error();
    return T{};
  }

  std::string bytes_of(const JsonReader& value) {
    auto bytes = from_hex(take(value.text()));
    if (!bytes && status_) status_ = value.error("expected hexadecimal digits");
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
  report.loss = members.number("loss");
  report.gradient_norm = members.number("gradient_norm");
  report.learning_rate = members.number("learning_rate");
  report.busy = members.number("busy");
  return report;
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
    if (type == "hello") return Hello{members.text("setup"), members.bytes("address")};
    if (type == "alive") return Alive{};
    if (type == "step") return read_step(members);
    if (type == "validation") return Validation{members.integer("step"), members.number("loss")};
    if (type == "finished") {
      return Finished{members.integer("steps"), members.integer("skipped"), members.integer("peak_bytes")};
    }
    if (type == "error") return read_error(members);
    return std::nullopt;
  });
}

Result<ToWorker> decode_to_worker(std::string_view text) {
  return decode<ToWorker>(text, [](const std::string& type, Members& members) -> std::optional<ToWorker> {
    if (type == "start") return Start{members.list_of_bytes("addresses")};
    if (type == "stop") return Stop{};
    return std::nullopt;
  });
}

}  // namespace everstep::launcher
