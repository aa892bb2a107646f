// What the launcher asked for, read once from the environment. read_settings in settings.cpp has
// the names of all variables; whoever sets them by hand gets the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ait::probe {

struct Range {
  uint64_t first;
  uint64_t last;  // included
};

struct Settings {
  // ATB_DUMP_TYPE
  bool tensors = false;
  bool layers = false;
  bool models = false;
  bool operations = false;
  bool kernels = false;
  bool statistics = false;

  bool data = false;  // or only descriptions
  bool before = false;
  bool after = true;
  bool inputs = true;
  bool outputs = true;
  bool tiling = false;
  bool children = true;
  bool check_overflow = false;
  bool stop_at_overflow = false;
  bool dry_run = false;
  bool debug = false;  // say on stderr what is recorded

  std::string_view ids;     // "2,3_1"; empty: all
  std::string_view names;   // "self,linear"
  std::string_view device;  // "0"; empty: all
  const Range* ranges = nullptr;
  size_t range_count = 0;

  const char* output = nullptr;     // folder, without a slash at its end; null: nowhere
  const char* scratch = nullptr;    // where the launcher looks for ledgers and raw topologies
  const char* timestamp = nullptr;  // of the run

  // Whether there is anything to do at all.
  bool active() const {
    return tensors || layers || models || operations || kernels || statistics || check_overflow;
  }
};

// `get` is getenv, or a test's. Texts are copied: the host may change its environment. They and the
// ranges live for ever.
Settings read_settings(const char* (*get)(const char* name));

// A bit for each element of a list that has matched something, in the order of the list, in memory
// that other threads may change, too. Elements beyond it are not noted.
struct Matches {
  uint64_t* words;
  size_t count;  // of words

  void note(size_t element) const;
};

// `ids` is the path of indices of an operation, `type` its type's name. What of Settings::ids and
// Settings::names matches is noted.
bool wants_operation(const Settings& settings, const int64_t* ids, size_t count,
                     std::string_view type, const Matches& ids_matched,
                     const Matches& names_matched);
bool wants_round(const Settings& settings, uint64_t round);

// Of a path as the library gives it: "{device}_{pid}/{round}/{operation}/…/after/intensor0.bin".
bool wants_device(const Settings& settings, std::string_view path);
bool wants_part(const Settings& settings, std::string_view path);

}  // namespace ait::probe
