#include "record/place.h"

#include <unistd.h>

#include <cstdlib>

namespace ait::record {
namespace {

constexpr int kDecimal = 10;

// One launcher may have been started by another: the innermost knows best.
struct Launcher {
  const char* rank;
  const char* local_rank;
  const char* world_size;
};
constexpr Launcher kLaunchers[] = {
    {"RANK", "LOCAL_RANK", "WORLD_SIZE"},  // torchrun
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},  // MPICH and its kin
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
};

Place::Number number_in(const char* variable) {
  const char* text = ::getenv(variable);
  if (text == nullptr || *text < '0' || *text > '9') return {};
  char* end = nullptr;
  const unsigned long long number = ::strtoull(text, &end, kDecimal);
  if (*end != '\0') return {};
  return {1, number};
}

}  // namespace

Place read_place() {
  Place place;
  for (const Launcher& launcher : kLaunchers) {
    place.rank = number_in(launcher.rank);
    if (place.rank.is_known == 0) continue;
    place.local_rank = number_in(launcher.local_rank);
    place.world_size = number_in(launcher.world_size);
    break;
  }
  if (::gethostname(place.host, sizeof place.host - 1) != 0) place.host[0] = '\0';
  place.host[sizeof place.host - 1] = '\0';
  return place;
}

}  // namespace ait::record
