// Who a process is among those of a parallel job, as torchrun, mpirun and Slurm say it in its environment.
//
//   Place place = read_place();
//   if (place.rank.is_known) print(place.rank.number, place.world_size.number, place.host);
#pragma once

#include <cstdint>

namespace ait::record {

struct Place {
  struct Number {
    uint64_t is_known = 0;
    uint64_t number = 0;
  };
  Number rank;
  Number local_rank;  // among those of its machine
  Number world_size;
  char host[64] = "";  // cut where it is longer
};

Place read_place();

}  // namespace ait::record
