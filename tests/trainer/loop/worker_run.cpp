#include "tests/trainer/loop/worker_run.h"

#include <bit>
#include <chrono>
#include <utility>

#include "trainer/torch/torch_stage.h"
#include "trainer/wire/byte_codec.h"

namespace everstep::trainer {
namespace {

constexpr std::chrono::seconds kGoodbye{20};

float weight_at(const Buffer& weights, std::int64_t element, Precision precision) {
  if (precision == Precision::kFp32) return weights.as<float>()[element];
  return std::bit_cast<float>(std::uint32_t{weights.as<std::uint16_t>()[element]} << 16);
}

NamedWeights named_weights(const StageLayout& layout, const Buffer& weights, Precision precision) {
  NamedWeights named;
  for (const StageLayout::Entry& entry : layout.entries) {
    std::vector<float>& values = named[entry.parameter.name];
    for (std::int64_t i = 0; i < entry.parameter.elements(); ++i) {
      values.push_back(weight_at(weights, entry.offset + i, precision));
    }
  }
  return named;
}

TrainHooks recording_hooks(const TrainOptions& options, WorkerRun& run) {
  TrainHooks hooks;
  hooks.now = [] { return Tick{std::chrono::steady_clock::now().time_since_epoch().count()}; };
  hooks.make_stage = make_torch_stage;
  hooks.initialise_weights = [&](const StageLayout& layout, const Buffer& weights) {
    initialise_weights(options.model, layout, weights);
  };
  hooks.initialise_master = [&](const StageLayout& layout, const Buffer& master) {
    initialise_master(options.model, layout, master);
  };
  hooks.on_step = [&](const StepReport& report) { run.steps.push_back(report); };
  hooks.on_validation = [&](std::int64_t, double loss) { run.validation_losses.push_back(loss); };
  hooks.on_end = [&](int stage, const StageLayout& layout, const Buffer& weights) {
    run.chunks[stage] = named_weights(layout, weights, options.model.precision);
  };
  return hooks;
}

void put(WireWriter& writer, double value) { writer.put(std::bit_cast<std::uint64_t>(value)); }
double get_double(WireReader& reader) { return std::bit_cast<double>(reader.get<std::uint64_t>()); }

void put(WireWriter& writer, const NamedWeights& weights) {
  writer.put(weights.size());
  for (const auto& [name, values] : weights) {
    writer.put_text(name);
    writer.put(values.size());
    for (const float value : values) writer.put(std::bit_cast<std::uint32_t>(value));
  }
}

NamedWeights get_weights(WireReader& reader) {
  NamedWeights weights;
  for (auto parameters = reader.get<std::size_t>(); parameters > 0 && reader.ok(); --parameters) {
    std::vector<float>& values = weights[reader.get_text()];
    for (auto elements = reader.get<std::size_t>(); elements > 0 && reader.ok(); --elements) {
      values.push_back(std::bit_cast<float>(reader.get<std::uint32_t>()));
    }
  }
  return weights;
}

}  // namespace

Result<WorkerRun> run_worker(const TrainOptions& options, const DataSource& data, Transport& transport,
                             const RunChanges& changes) {
  prepare_torch(1);
  WorkerRun run;
  TrainHooks hooks = recording_hooks(options, run);
  changes.change_hooks(transport.worker(), hooks);
  const auto result = changes.program(options, data, transport, hooks);
  if (!result) return result.error();
  run.skipped = result->skipped;
  EVERSTEP_TRY(transport.close(kGoodbye));
  return run;
}

std::string encode_run(const WorkerRun& run) {
  WireWriter writer;
  writer.put(run.skipped);
  writer.put(run.steps.size());
  for (const StepReport& step : run.steps) {
    writer.put(step.step);
    put(writer, step.loss);
    put(writer, step.gradient_norm);
    put(writer, step.learning_rate);
    writer.put(std::uint8_t{step.skipped});
  }
  writer.put(run.validation_losses.size());
  for (const double loss : run.validation_losses) put(writer, loss);
  writer.put(run.chunks.size());
  for (const auto& [stage, weights] : run.chunks) {
    writer.put(stage);
    put(writer, weights);
  }
  return std::move(writer).take();
}

WorkerRun decode_run(std::string_view bytes) {
  WireReader reader(std::as_bytes(std::span(bytes)));
  WorkerRun run;
  reader.get(run.skipped);
  for (auto steps = reader.get<std::size_t>(); steps > 0 && reader.ok(); --steps) {
    StepReport& step = run.steps.emplace_back();
    reader.get(step.step);
    step.loss = get_double(reader);
    step.gradient_norm = get_double(reader);
    step.learning_rate = get_double(reader);
    step.skipped = reader.get<std::uint8_t>() != 0;
  }
  for (auto losses = reader.get<std::size_t>(); losses > 0 && reader.ok(); --losses) {
    run.validation_losses.push_back(get_double(reader));
  }
  for (auto chunks = reader.get<std::size_t>(); chunks > 0 && reader.ok(); --chunks) {
    const auto stage = reader.get<int>();
    run.chunks[stage] = get_weights(reader);
  }
  EVERSTEP_CHECK(reader.at_end(), "a worker's outcome is damaged");
  return run;
}

}  // namespace everstep::trainer
