#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "launcher/checkpoint/hugging_face.h"
#include "launcher/checkpoint/model_import.h"
#include "launcher/cli/files.h"
#include "storage/posix/posix_file_system.h"

namespace everstep::launcher {
namespace {

using storage::SafetensorsFile;
using trainer::ParameterSpec;

constexpr std::size_t kLargestConfig = std::size_t{1} << 20;

Error about(const std::string& path, const Error& error) {
  return {error.code, path + ": " + error.message, error.hint};
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

// Finds parameters in the file and remembers which of its tensors were used.
class Finder {
 public:
  explicit Finder(const SafetensorsFile& content) : content_(content) {}

  const SafetensorsFile::Entry* find(const ParameterSpec& parameter) {
    for (const std::string& name : hugging_face_names(parameter.name)) {
      if (const SafetensorsFile::Entry* entry = content_.find(name); entry != nullptr) {
        used_.insert(name);
        return entry;
      }
    }
    return nullptr;
  }

  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const SafetensorsFile::Entry& entry : content_.entries) {
      if (!used_.contains(entry.tensor.name)) names.push_back(entry.tensor.name);
    }
    return names;
  }

 private:
  const SafetensorsFile& content_;
  std::set<std::string> used_;
};

Result<ImportSource> source_of(Finder& finder, const ParameterSpec& parameter, const ParameterSpec& embedding) {
  const SafetensorsFile::Entry* own = finder.find(parameter);
  const SafetensorsFile::Entry* tied = parameter.tied ? finder.find(embedding) : nullptr;
  const SafetensorsFile::Entry* entry = own != nullptr ? own : tied;
  if (entry == nullptr) return invalid_argument("the tensor " + parameter.name + " is not there");
  if (entry->tensor.shape != parameter.shape) {
    return invalid_argument("the tensor " + entry->tensor.name + " has the shape " + shape_text(entry->tensor.shape) +
                            ", the model's is " + shape_text(parameter.shape));
  }
  ImportSource source{*entry, std::nullopt};
  if (own != nullptr && tied != nullptr && own != tied) source.must_equal = *tied;
  return source;
}

// Path of the weights, with links resolved: caches of Hugging Face are full of them.
Result<std::filesystem::path> weights_path(const std::filesystem::path& path) {
  std::error_code error;
  const bool is_directory = std::filesystem::is_directory(path, error);
  const std::filesystem::path weights = is_directory ? path / "model.safetensors" : path;
  if (is_directory && !std::filesystem::exists(weights, error) &&
      std::filesystem::exists(path / "model.safetensors.index.json", error)) {
    return invalid_argument(path.string() + " holds a model in several files", "save it in one, by max_shard_size");
  }
  auto resolved = std::filesystem::canonical(weights, error);
  if (error) return not_found("cannot read " + weights.string() + ": " + error.message());
  return resolved;
}

}  // namespace

Result<ForeignModel> open_foreign_model(const std::string& path, bool needs_config) {
  const auto weights = weights_path(path);
  if (!weights) return weights.error();
  const auto files = storage::open_posix_file_system(weights->parent_path().string(), false);
  if (!files) return files.error();
  auto file = (*files)->open(weights->filename().string());
  if (!file) return file.error();
  auto content = read_safetensors_header(**file);
  if (!content) return about(weights->string(), content.error());
  ForeignModel model{weights->string(), std::move(file).value(), std::move(content).value(), std::nullopt};
  if (!needs_config) return model;

  std::error_code error;
  const std::filesystem::path given(path);
  const std::filesystem::path directory = std::filesystem::is_directory(given, error) ? given : given.parent_path();
  const std::string config_path = (directory / "config.json").string();
  const auto text = read_file(config_path, kLargestConfig);
  if (!text) return text.error();
  const auto config = parse_hugging_face_config(*text);
  if (!config) return about(config_path, config.error());
  model.model = *config;
  return model;
}

Result<ImportPlan> plan_import(const trainer::ModelConfig& model, const SafetensorsFile& content) {
  Finder finder(content);
  const std::vector<ParameterSpec> embedding = parameters_of(model, 0);
  ImportPlan plan;
  for (int block = 0; block < model.blocks(); ++block) {
    std::vector<ImportSource>& sources = plan.blocks.emplace_back();
    for (const ParameterSpec& parameter : parameters_of(model, block)) {
      auto source = source_of(finder, parameter, embedding.front());
      if (!source) return source.error();
      sources.push_back(std::move(source).value());
    }
  }
  plan.ignored = finder.unused();
  return plan;
}

}  // namespace everstep::launcher
