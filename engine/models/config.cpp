#include "models/config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/mapped_file.h"

namespace atb_speed {
namespace {

using ait::Error;
using ait::ErrorCode;
using ait::fail;
using ait::Result;
using Json = nlohmann::json;

// Far beyond any model; smaller than what would overflow a product of two.
constexpr int64_t kLargestSize = int64_t{1} << 24;
// A config is a page of text.
constexpr size_t kMaxConfigBytes = size_t{1} << 20;

// Reads values one after another and remembers the first thing that was wrong, so that the reading
// code need not stop at each.
class Fields {
 public:
  Fields(const Json& json, std::optional<Error>& error, std::string path)
      : json_(json), error_(error), path_(std::move(path)) {}

  void wrong(const char* key, const char* expected) const {
    fail(Error(ErrorCode::kUnsupported) << "\"" << key << "\" should be " << expected);
  }
  void fail(Error error) const {
    if (!error_) error_ = std::move(error.set_path(path_));
  }
  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }

  // `missing` stands for an absent key; 0 says that it must be there.
  int64_t size(const char* key, int64_t missing) const {
    if (!has(key)) {
      if (missing == 0) wrong(key, "there");
      return std::max<int64_t>(1, missing);
    }
    const Json& value = json_[key];
    if (value.is_number_integer() && value.get<int64_t>() > 0 &&
        value.get<int64_t>() <= kLargestSize)
      return value.get<int64_t>();
    wrong(key, "a positive integer of a possible size");
    return 1;
  }
  // For what does not matter enough to fail.
  int64_t integer_or(const char* key, int64_t otherwise) const {
    return has(key) && json_[key].is_number_integer() ? json_[key].get<int64_t>() : otherwise;
  }
  double number(const char* key, double missing) const {
    if (!has(key)) return missing;
    if (json_[key].is_number() && std::isfinite(json_[key].get<double>()))
      return json_[key].get<double>();
    wrong(key, "a number");
    return missing;
  }
  bool flag(const char* key, bool missing) const {
    if (!has(key)) return missing;
    if (json_[key].is_boolean()) return json_[key].get<bool>();
    wrong(key, "true or false");
    return missing;
  }
  std::string text(const char* key) const {
    return has(key) && json_[key].is_string() ? json_[key].get<std::string>() : std::string();
  }
  Fields inside(const char* key) const {
    static const Json nothing = Json::object();
    if (json_[key].is_object()) return {json_[key], error_, path_};
    wrong(key, "an object");
    return {nothing, error_, path_};
  }

 private:
  const Json& json_;
  std::optional<Error>& error_;
  std::string path_;
};

// Older files say "rope_theta" beside "rope_scaling", newer ones put all into "rope_parameters".
RopeConfig read_rope(const Fields& fields) {
  RopeConfig rope;
  rope.theta = fields.number("rope_theta", rope.theta);
  const char* key = fields.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (fields.has(key)) {
    const Fields scaling = fields.inside(key);
    rope.theta = scaling.number("rope_theta", rope.theta);
    std::string kind = scaling.text("rope_type");
    if (kind.empty()) kind = scaling.text("type");
    if (kind == "linear")
      rope.kind = RopeKind::kLinear;
    else if (kind == "llama3")
      rope.kind = RopeKind::kLlama3;
    else if (!kind.empty() && kind != "default")
      fields.fail(Error(ErrorCode::kUnsupported)
                  << "rope type \"" << ait::printable(kind) << "\" is not known here, only "
                  << "default, linear and llama3");
    rope.factor = scaling.number("factor", rope.factor);
    rope.low_freq_factor = scaling.number("low_freq_factor", rope.low_freq_factor);
    rope.high_freq_factor = scaling.number("high_freq_factor", rope.high_freq_factor);
    rope.original_positions =
        scaling.number("original_max_position_embeddings", rope.original_positions);
    if (scaling.number("partial_rotary_factor", 1) != 1) fields.wrong("partial_rotary_factor", "1");
  }
  if (rope.theta <= 0 || rope.factor <= 0 || rope.low_freq_factor <= 0 ||
      rope.high_freq_factor <= rope.low_freq_factor || rope.original_positions <= 0)
    fields.wrong(key, "made of positive numbers, the high factor above the low one");
  return rope;
}

void read_family(const Fields& fields, LlamaConfig& config) {
  config.model_type = fields.text("model_type");
  if (config.model_type == "llama") {
    config.qkv_bias = config.output_bias = fields.flag("attention_bias", false);
    config.mlp_bias = fields.flag("mlp_bias", false);
    return;
  }
  bool window = false;
  if (config.model_type == "qwen2") {
    config.qkv_bias = true;
    // It names a window that it uses only where this says so.
    window = fields.flag("use_sliding_window", false);
  } else if (config.model_type == "mistral") {
    window = true;
  } else {
    fields.fail(Error(ErrorCode::kUnsupported)
                << "model type \"" << ait::printable(config.model_type)
                << "\" is not known here, only llama, qwen2 and mistral");
  }
  if (window && fields.has("sliding_window"))
    config.sliding_window = fields.size("sliding_window", 0);
}

LlamaConfig read_fields(const Fields& fields) {
  LlamaConfig config;
  read_family(fields, config);
  if (const auto act = fields.text("hidden_act"); !act.empty() && act != "silu")
    fields.wrong("hidden_act", "silu");
  config.hidden = fields.size("hidden_size", 0);
  config.intermediate = fields.size("intermediate_size", 0);
  config.layers = fields.size("num_hidden_layers", 0);
  config.heads = fields.size("num_attention_heads", 0);
  config.kv_heads = fields.size("num_key_value_heads", config.heads);
  config.vocabulary = fields.size("vocab_size", 0);
  config.max_positions = fields.size("max_position_embeddings", 2048);
  if (config.heads % config.kv_heads != 0)
    fields.wrong("num_attention_heads", "a multiple of num_key_value_heads");
  if (!fields.has("head_dim") && config.hidden % config.heads != 0)
    fields.wrong("hidden_size", "a multiple of num_attention_heads");
  config.head_size = fields.size("head_dim", std::max<int64_t>(1, config.hidden / config.heads));
  if (config.head_size % 2 != 0) fields.wrong("head_dim", "even");
  config.epsilon = static_cast<float>(fields.number("rms_norm_eps", 1e-6));
  config.tied_embeddings = fields.flag("tie_word_embeddings", false);
  const int64_t pad = fields.integer_or("pad_token_id", 0);
  if (pad >= 0 && pad < config.vocabulary) config.pad_token = pad;
  config.rope = read_rope(fields);
  return config;
}

}  // namespace

Result<LlamaConfig> read_config(const std::string& folder) {
  const std::string path = folder + "/config.json";
  auto file = ait::MappedFile::open(path);
  if (!file)
    return fail(Error(file.error().code(), path)
                << file.error().message()
                << "; a model is a folder with config.json and *.safetensors");
  const auto bytes = (*file)->bytes();
  if (bytes.size() > kMaxConfigBytes)
    return fail(Error(ErrorCode::kCorrupt, path) << "is too large for a model's config.json");
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const Json json = Json::parse(text, text + bytes.size(), nullptr, false);
  if (!json.is_object()) return fail(Error(ErrorCode::kCorrupt, path) << "is not a JSON object");
  std::optional<Error> error;
  LlamaConfig config = read_fields(Fields(json, error, path));
  if (error) return fail(*std::move(error));
  return config;
}

std::vector<float> rope_frequencies(const LlamaConfig& config) {
  constexpr double kTwoPi = 6.283185307179586;
  const RopeConfig& rope = config.rope;
  std::vector<float> frequencies;
  for (int64_t i = 0; i < config.head_size; i += 2) {
    const double exponent = static_cast<double>(i) / static_cast<double>(config.head_size);
    double frequency = 1.0 / std::pow(rope.theta, exponent);
    if (rope.kind == RopeKind::kLinear) frequency /= rope.factor;
    if (rope.kind == RopeKind::kLlama3) {
      // Slow rotations are stretched, fast ones kept, and those between blended.
      const double wavelength = kTwoPi / frequency;
      const double turns = rope.original_positions / wavelength;
      if (turns < rope.low_freq_factor) {
        frequency /= rope.factor;
      } else if (turns <= rope.high_freq_factor) {
        const double smooth =
            (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
        frequency = (1 - smooth) * frequency / rope.factor + smooth * frequency;
      }
    }
    frequencies.push_back(static_cast<float>(frequency));
  }
  return frequencies;
}

}  // namespace atb_speed
