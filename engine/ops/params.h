// Operation parameters as structs that read and write themselves as JSON.
//
//   struct RopeParam {
//     int64_t rotaryCoeff = 4;
//     void visit(ParamFields& fields) { fields.field("rotaryCoeff", rotaryCoeff); }
//     Status check() const { … }
//   };
//   class RopeOperation : public ParamOperation<RopeParam> { … };
//
// Key names and defaults are ATB's. Enumerations are integers, as ATB writes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "atb/kernel_operation.h"

namespace atb {

class ParamFields {
 public:
  virtual ~ParamFields() = default;
  virtual void field(const char* key, bool& value) = 0;
  virtual void field(const char* key, int64_t& value) = 0;
  virtual void field(const char* key, float& value) = 0;
  virtual void field(const char* key, std::string& value) = 0;
  virtual void field(const char* key, std::vector<int64_t>& value) = 0;
  virtual void group(const char* key, const std::function<void(ParamFields&)>& fields) = 0;
};

using VisitParam = std::function<void(ParamFields&)>;

AIT_ATB_API std::string write_param(const VisitParam& visit);
// Fails on text that is not a JSON object, keys that are not visited, and values of a wrong type.
AIT_ATB_API Status read_param(const std::string& type, const std::string& json,
                              const VisitParam& visit);

template <class Param, class Base = KernelOperation>
class ParamOperation : public Base {
 public:
  using Base::Base;

  std::string GetParam() const override {
    Param copy = param_;
    return write_param([&](ParamFields& fields) { copy.visit(fields); });
  }

  Status UpdateParam(const std::string& json) override {
    Param next = param_;
    const VisitParam visit = [&](ParamFields& fields) { next.visit(fields); };
    if (auto status = read_param(this->GetName(), json, visit); !status.ok()) return status;
    if (auto status = next.check(); !status.ok())
      return {status.code(), this->GetName() + ": " + status.message()};
    param_ = next;
    this->forget_plan();
    return {};
  }

 protected:
  const Param& param() const { return param_; }

 private:
  Param param_;
};

}  // namespace atb
