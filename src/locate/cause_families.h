// The families of hypotheses, one file each. A function adds what explains the fault.
#pragma once

#include <string_view>
#include <vector>

#include "locate/evidence.h"

namespace ait::locate {

using Candidates = std::vector<Candidate>;

// Elements stand in another order: axes, heads, stretches of columns, rows.
void layout_causes(const Evidence& evidence, Candidates& out);
// A factor, a sign, a bias, an addend.
void arithmetic_causes(const Evidence& evidence, Candidates& out);
// Norms: epsilon, 1 + weight, weight, mean.
void norm_causes(const Evidence& evidence, Candidates& out);
// Activations and products with a gate.
void activation_causes(const Evidence& evidence, Candidates& out);
// Narrow types: casts, accumulation, saturation, overflow, values flushed to 0.
void precision_causes(const Evidence& evidence, Candidates& out);
// Rotary embedding: which elements are turned together, and by which position.
void rotary_causes(const Evidence& evidence, Candidates& out);
// Attention: scale, mask, heads of grouped queries, cache.
void attention_causes(const Evidence& evidence, Candidates& out);
// Products with weights that are not known: what was done to their input.
void linear_causes(const Evidence& evidence, Candidates& out);
// Which rows, columns, heads or experts are hit.
void region_causes(const Evidence& evidence, Candidates& out);

// The type's name contains the word, in any case.
bool type_has(const CauseCase& fault, std::string_view word);

}  // namespace ait::locate
