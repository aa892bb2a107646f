#include "ops/params.h"

#include <nlohmann/json.hpp>

namespace atb {
namespace {

using Json = nlohmann::json;

class Writer final : public ParamFields {
 public:
  explicit Writer(Json& to) : to_(to) {}

  void field(const char* key, bool& value) override { to_[key] = value; }
  void field(const char* key, int64_t& value) override { to_[key] = value; }
  // All digits of the float: ATB writes 1e-5 as 9.999999747378752e-06.
  void field(const char* key, float& value) override { to_[key] = static_cast<double>(value); }
  void field(const char* key, std::string& value) override { to_[key] = value; }
  void field(const char* key, std::vector<int64_t>& value) override { to_[key] = value; }
  void group(const char* key, const VisitParam& fields) override {
    to_[key] = Json::object();
    Writer inner(to_[key]);
    fields(inner);
  }

 private:
  Json& to_;
};

// Takes what it finds out of the object, so that what remains is what nobody asked for.
class Reader final : public ParamFields {
 public:
  explicit Reader(Json& from) : from_(from) {}

  void field(const char* key, bool& value) override {
    take(key, "true or false", [&](const Json& j) {
      if (!j.is_boolean()) return false;
      value = j.get<bool>();
      return true;
    });
  }
  void field(const char* key, int64_t& value) override {
    take(key, "an integer", [&](const Json& j) {
      if (!j.is_number_integer()) return false;
      value = j.get<int64_t>();
      return true;
    });
  }
  void field(const char* key, float& value) override {
    take(key, "a number", [&](const Json& j) {
      if (!j.is_number()) return false;
      value = static_cast<float>(j.get<double>());
      return true;
    });
  }
  void field(const char* key, std::string& value) override {
    take(key, "a text", [&](const Json& j) {
      if (!j.is_string()) return false;
      value = j.get<std::string>();
      return true;
    });
  }
  void field(const char* key, std::vector<int64_t>& value) override {
    take(key, "a list of integers", [&](const Json& j) {
      if (!j.is_array() || j.size() > Dims::kMax) return false;
      std::vector<int64_t> read;
      for (const Json& one : j) {
        if (!one.is_number_integer()) return false;
        read.push_back(one.get<int64_t>());
      }
      value = std::move(read);
      return true;
    });
  }
  void group(const char* key, const VisitParam& fields) override {
    take(key, "an object", [&](Json& j) {
      if (!j.is_object()) return false;
      Reader inner(j);
      fields(inner);
      if (problem_.empty()) problem_ = inner.problem();
      return true;
    });
  }

  // Empty when everything was understood.
  std::string problem() const {
    if (!problem_.empty()) return problem_;
    if (from_.empty()) return {};
    return "has no parameter \"" + from_.begin().key() + "\"";
  }

 private:
  template <class Read>
  void take(const char* key, const char* expected, const Read& read) {
    const auto found = from_.find(key);
    if (found == from_.end()) return;
    if (!read(*found) && problem_.empty())
      problem_ = std::string("needs ") + expected + " for parameter \"" + key + "\"";
    from_.erase(key);
  }

  Json& from_;
  std::string problem_;
};

}  // namespace

std::string write_param(const VisitParam& visit) {
  Json json = Json::object();
  Writer writer(json);
  visit(writer);
  return json.dump();
}

Status read_param(const std::string& type, const std::string& text, const VisitParam& visit) {
  Json json = Json::parse(text.empty() ? "{}" : text, nullptr, false);
  if (!json.is_object()) return invalid_param("the parameters of " + type + " are no JSON object");
  Reader reader(json);
  visit(reader);
  if (const std::string problem = reader.problem(); !problem.empty())
    return invalid_param(type + " " + problem);
  return {};
}

}  // namespace atb
