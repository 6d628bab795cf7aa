// Modules: find and load the slots: the built-in ones for this processor, or those a user compiled.
#pragma once

#include <string>
#include <vector>

#include "outpace/ann/slots.hpp"

namespace outpace::ann {

struct LoadedSlots {
    Slots slots;
    std::string instruction_set;  // of the built-in ones
    std::string replaced;  // which slots came from the user's folder, such as "search refine"; empty: none
};

// The instruction sets that this processor can run and this build holds, best first.
std::vector<std::string> usable_instruction_sets();

// `folder` holds the built-in modules; `wanted` names an instruction set, or is empty for the best; `modules`
// is a folder with construct.so, search.so or refine.so, or empty. Modules stay loaded for the life of the
// process.
LoadedSlots load_slots(const std::string& folder, const std::string& wanted, const std::string& modules);

}  // namespace outpace::ann
