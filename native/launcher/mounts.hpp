// A root file system of one's own, built from a description.
#pragma once

#include "description.hpp"

namespace outpace {

// Replaces the root of this mount namespace. The old one is gone afterwards, the new one is read-only save
// for what the description makes writable. Needs a mount and a pid namespace of its own, and the old /proc.
void build_root(const JailDescription& jail);

}  // namespace outpace
