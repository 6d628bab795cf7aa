// What this kernel allows this user.
#pragma once

namespace outpace {

// Tries each means of confinement in a child of its own and prints one JSON object on stdout.
void probe();

}  // namespace outpace
