#include "launcher/checkpoint/hugging_face.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "storage/json/json_reader.h"

namespace everstep::launcher {
namespace {

using scheduler::ModelFamily;
using scheduler::ModelShape;
using storage::Json;
using storage::JsonReader;
using trainer::ModelConfig;

constexpr double kGptEpsilon = 1e-5;
constexpr double kBertEpsilon = 1e-12;
constexpr int kGptVocabulary = 50257;
constexpr int kSegments = 2;
constexpr int kWidening = 4;  // of the feed-forward layer
constexpr std::string_view kPreTraining = "BertForPreTraining";

std::string_view type_name(const ModelConfig& model) {
  return model.precision == trainer::Precision::kBf16 ? "bfloat16" : "float32";
}

Json gpt_config(const ModelConfig& model) {
  const ModelShape& shape = model.shape;
  // GPT-2's last token ends a text. Other vocabularies may have no such token.
  const Json end_of_text = shape.vocabulary == kGptVocabulary ? Json(kGptVocabulary - 1) : Json(nullptr);
  Json json = Json::object();
  json.set("architectures", Json::array().append("GPT2LMHeadModel")).set("model_type", "gpt2");
  json.set("n_layer", shape.layers).set("n_embd", shape.hidden).set("n_head", shape.heads).set("n_inner", nullptr);
  json.set("n_positions", shape.sequence).set("n_ctx", shape.sequence).set("vocab_size", shape.vocabulary);
  json.set("activation_function", "gelu_new").set("layer_norm_epsilon", kGptEpsilon).set("initializer_range", 0.02);
  json.set("embd_pdrop", model.dropout).set("resid_pdrop", model.dropout).set("attn_pdrop", 0.0);
  json.set("tie_word_embeddings", true).set("bos_token_id", end_of_text).set("eos_token_id", end_of_text);
  return json.set("torch_dtype", type_name(model));
}

Json bert_config(const ModelConfig& model) {
  const ModelShape& shape = model.shape;
  Json json = Json::object();
  json.set("architectures", Json::array().append(model.next_sentence ? kPreTraining : "BertForMaskedLM"));
  json.set("model_type", "bert").set("num_hidden_layers", shape.layers).set("hidden_size", shape.hidden);
  json.set("num_attention_heads", shape.heads).set("intermediate_size", kWidening * shape.hidden);
  json.set("max_position_embeddings", shape.sequence).set("vocab_size", shape.vocabulary);
  json.set("type_vocab_size", kSegments).set("hidden_act", "gelu").set("layer_norm_eps", kBertEpsilon);
  json.set("hidden_dropout_prob", model.dropout).set("attention_probs_dropout_prob", 0.0);
  json.set("initializer_range", 0.02).set("position_embedding_type", "absolute").set("pad_token_id", 0);
  return json.set("tie_word_embeddings", true).set("torch_dtype", type_name(model));
}

// Reads the members of a config.json; the first that does not fit becomes the error.
class ConfigReader {
 public:
  explicit ConfigReader(const Json& json) : root_(json) {}

  int size(std::string_view name) { return static_cast<int>(take(root_.integer_at(name, 1, 1 << 24)).value_or(1)); }

  double number_or(std::string_view name, double missing) {
    return root_.has(name) ? take(root_.number_at(name)).value_or(missing) : missing;
  }

  // Refuses any value but these; a member that is missing or null has the first, which is transformers' default.
  void expect(std::string_view name, const std::vector<Json>& allowed) {
    const Json* found = root_.json().find(name);
    if (found == nullptr || *found == Json(nullptr)) return;
    if (std::find(allowed.begin(), allowed.end(), *found) != allowed.end()) return;
    std::string texts;
    for (const Json& value : allowed) texts += (texts.empty() ? "" : " or ") + to_text(value, 0);
    complain(invalid_argument(std::string(name) + ": only " + texts + " can be trained here, not " +
                              to_text(*found, 0).substr(0, 40)));
  }

  // The same for a number that has a default of its own.
  void expect_number(std::string_view name, double allowed, double missing) {
    if (number_or(name, missing) == allowed) return;
    complain(invalid_argument(std::string(name) + ": only " + to_text(Json(allowed), 0) + " can be trained here"));
  }

  bool has_architecture(std::string_view name) const {
    const Json* list = root_.json().find("architectures");
    const auto* names = list == nullptr ? nullptr : std::get_if<Json::Array>(&list->value());
    return names != nullptr && std::find(names->begin(), names->end(), Json(name)) != names->end();
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  template <typename T>
  std::optional<T> take(const Result<T>& result) {
    if (result) return *result;
    complain(result.error());
    return std::nullopt;
  }

  void complain(Error error) {
    if (!error_) error_ = std::move(error);
  }

  JsonReader root_;
  std::optional<Error> error_;
};

ModelConfig read_gpt(ConfigReader& reader) {
  ModelConfig model;
  model.shape = {"gpt2",
                 ModelFamily::kGpt,
                 reader.size("n_layer"),
                 reader.size("n_embd"),
                 reader.size("n_head"),
                 reader.size("n_positions"),
                 reader.size("vocab_size")};
  reader.expect("n_inner", {kWidening * model.shape.hidden});
  reader.expect("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  reader.expect_number("layer_norm_epsilon", kGptEpsilon, kGptEpsilon);
  reader.expect("tie_word_embeddings", {true});
  reader.expect("scale_attn_weights", {true});
  reader.expect("scale_attn_by_inverse_layer_idx", {false});
  reader.expect("add_cross_attention", {false});
  model.dropout = reader.number_or("resid_pdrop", 0.1);
  return model;
}

ModelConfig read_bert(ConfigReader& reader) {
  ModelConfig model;
  model.shape = {"bert",
                 ModelFamily::kBert,
                 reader.size("num_hidden_layers"),
                 reader.size("hidden_size"),
                 reader.size("num_attention_heads"),
                 reader.size("max_position_embeddings"),
                 reader.size("vocab_size")};
  model.next_sentence = reader.has_architecture(kPreTraining);
  reader.expect_number("intermediate_size", kWidening * model.shape.hidden, 3072);
  reader.expect("hidden_act", {"gelu"});
  reader.expect_number("layer_norm_eps", kBertEpsilon, kBertEpsilon);
  reader.expect("type_vocab_size", {kSegments});
  reader.expect("position_embedding_type", {"absolute"});
  reader.expect("tie_word_embeddings", {true});
  reader.expect("is_decoder", {false});
  reader.expect("add_cross_attention", {false});
  model.dropout = reader.number_or("hidden_dropout_prob", 0.1);
  return model;
}

// The text with `end` replaced, if it ends so.
std::optional<std::string> with_end(const std::string& text, std::string_view end, std::string_view replacement) {
  if (!text.ends_with(end)) return std::nullopt;
  return text.substr(0, text.size() - end.size()) + std::string(replacement);
}

}  // namespace

Json hugging_face_config(const ModelConfig& model) {
  return model.shape.family == ModelFamily::kGpt ? gpt_config(model) : bert_config(model);
}

Result<ModelConfig> parse_hugging_face_config(std::string_view text) {
  const auto json = storage::parse_json(text);
  if (!json) return json.error();
  const auto type = JsonReader(*json).text_at("model_type");
  if (!type) return type.error();
  if (*type != "gpt2" && *type != "bert") {
    return invalid_argument("model_type: only gpt2 and bert can be trained here, not '" + type->substr(0, 40) + "'");
  }
  ConfigReader reader(*json);
  ModelConfig model = *type == "gpt2" ? read_gpt(reader) : read_bert(reader);
  if (reader.error()) return *reader.error();
  EVERSTEP_TRY(check(model));
  return model;
}

std::vector<std::string> hugging_face_names(const std::string& parameter) {
  std::vector<std::string> names{parameter};
  for (const std::string_view prefix : {"transformer.", "bert."}) {
    if (parameter.starts_with(prefix)) names.push_back(parameter.substr(prefix.size()));
  }
  const std::vector<std::string> usual = names;
  for (const std::string& name : usual) {
    if (const auto gamma = with_end(name, "LayerNorm.weight", "LayerNorm.gamma")) names.push_back(*gamma);
    if (const auto beta = with_end(name, "LayerNorm.bias", "LayerNorm.beta")) names.push_back(*beta);
  }
  return names;
}

}  // namespace everstep::launcher
