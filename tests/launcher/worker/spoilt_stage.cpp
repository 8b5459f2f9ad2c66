#include "tests/launcher/worker/spoilt_stage.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/text.h"

namespace everstep::launcher {
namespace {

struct Spoilt {
  Position position;
  int block = 0;
  bool forward = true;
  std::string file;  // empty: always
};

std::optional<Spoilt> asked_for() {
  const char* variable = std::getenv("TEST_NAN_AT");
  if (variable == nullptr) return std::nullopt;
  std::string_view text = variable;
  const auto next = [&text] {
    const std::string_view word = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    return word;
  };
  Spoilt spoilt;
  spoilt.position = {parse_number<std::int64_t>(next()).value_or(-1)};
  spoilt.block = parse_number<int>(next()).value_or(-1);
  spoilt.forward = next() == "forward";
  spoilt.file = text;
  return spoilt;
}

class SpoiltStage final : public trainer::StageCompute {
 public:
  SpoiltStage(Spoilt spoilt, trainer::DeviceMemory& memory, std::unique_ptr<trainer::StageCompute> stage)
      : spoilt_(std::move(spoilt)), memory_(memory), stage_(std::move(stage)) {
    std::fill_n(not_a_number_.data, not_a_number_.size, std::byte{0xFF});
  }

  void select_weights(trainer::WeightSet set) override { stage_->select_weights(set); }

  Result<Output> forward(Position position, trainer::Buffer input) override {
    auto output = stage_->forward(position, std::move(input));
    if (!output || !spoilt_.forward || !is_due(position)) return output;
    if (output->tensor.empty()) output->loss = std::numeric_limits<double>::quiet_NaN();
    spoil(output->tensor);
    return output;
  }

  Result<trainer::Buffer> backward_input(Position position, trainer::Buffer output_gradient, int parity) override {
    auto gradient = stage_->backward_input(position, std::move(output_gradient), parity);
    if (!gradient || spoilt_.forward || !is_due(position)) return gradient;
    spoils_weights_ = true;
    spoil(*gradient);
    return gradient;
  }

  Status backward_weights(Position position, int parity) override {
    if (position == spoilt_.position && std::exchange(spoils_weights_, false)) overflowed_[parity] = true;
    return stage_->backward_weights(position, parity);
  }

  Result<Output> evaluate(std::int64_t index, trainer::Buffer input) override {
    return stage_->evaluate(index, std::move(input));
  }

  trainer::Noted<bool> take_overflow(int parity) override {
    return std::exchange(overflowed_[parity], false) ? true : stage_->take_overflow(parity);
  }

 private:
  bool is_due(Position position) const {
    if (position != spoilt_.position || spoilt_.file.empty()) return position == spoilt_.position;
    const int file = ::open(spoilt_.file.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file >= 0) ::close(file);
    return file >= 0;
  }

  void spoil(const trainer::Buffer& tensor) {
    if (!tensor.empty()) memory_.copy(tensor.part(0, not_a_number_.size), not_a_number_);
  }

  Spoilt spoilt_;
  trainer::DeviceMemory& memory_;
  trainer::Buffer not_a_number_ = memory_.allocate_pinned(sizeof(float));  // one of fp32, two of bf16
  std::unique_ptr<trainer::StageCompute> stage_;
  bool spoils_weights_ = false;  // in the second half of the backward at hand
  std::array<bool, 2> overflowed_{};
};

}  // namespace

MakeStage spoilt_as_asked(MakeStage make_stage) {
  const auto spoilt = asked_for();
  if (!spoilt) return make_stage;
  return [spoilt, make = std::move(make_stage)](const trainer::StageRequest& request) {
    auto stage = make(request);
    const bool holds_block = request.layout.first_block <= spoilt->block && spoilt->block < request.layout.end_block;
    if (!holds_block) return stage;
    return std::unique_ptr<trainer::StageCompute>(
        std::make_unique<SpoiltStage>(*spoilt, *request.device, std::move(stage)));
  };
}

}  // namespace everstep::launcher
