// The probe behind its two interfaces (abi.cpp): answers the acceleration library's questions and
// takes what it hands over. It records and never analyses; everything clever happens afterwards, in
// the launcher.
//
// It lives in someone else's process. Nothing here throws or prints to stdout; until the library's
// first call nothing happens but that fork handlers are registered. What goes wrong is said once on
// stderr and counted in the ledger (record/ledger.h), and the host runs on. All functions may be
// called from many threads, and in forked children.
//
// This is the main header of the probe. `ait llm dump --exec program` preloads it and says by the
// environment what is wanted (settings.h); tests/probe/guest_test.cpp calls it as a host does. A
// further function of the library's interface is declared and defined in abi.cpp, does its work
// here, and stands in the list of tests/probe/check_symbols.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "settings.h"

namespace ait::probe {

// The settings of this process; those of a process that nobody wants to record are all off.
const Settings& settings();

// Questions that are also counted, to tell afterwards why nothing was captured.
bool is_operation_wanted(const int64_t* ids, size_t count, std::string_view type);
bool is_round_wanted(uint64_t round);
bool is_overflow_checked();

// Things handed over. Paths are the library's, relative to a root of ours. Memory is free again
// when the function returns.
struct TensorTexts {
  std::string_view format;
  std::string_view type;
  std::string_view dims;
};
void save_tensor(const TensorTexts& texts, const void* data, uint64_t bytes, std::string_view path);
void save_tiling(const void* data, uint64_t bytes, std::string_view path);
void save_parameter(std::string_view text, std::string_view path);

// A row of the operation or kernel table.
enum class Table : uint8_t { kOperations, kKernels };
struct RowTensor {
  std::string_view type;
  std::string_view format;
  std::string_view shape;
  std::string_view path;
};
// The library's tensors lie in memory as one of its two string ABIs has them; `tensor_at` reads
// one.
struct RowTensors {
  const void* context;
  size_t count;
  RowTensor (*tensor_at)(const void* context, size_t index);
};
void add_row(Table table, uint64_t round, std::string_view operation, std::string_view parameter,
             const RowTensors& inputs, const RowTensors& outputs);

void add_statistic(uint64_t round, std::string_view operation, std::string_view text);
void save_layer_graph(std::string_view operation, std::string_view json);
bool is_model_wanted(std::string_view model);
void save_model_graph(std::string_view model, std::string_view json);
void report_overflow(std::string_view kernel);

}  // namespace ait::probe
