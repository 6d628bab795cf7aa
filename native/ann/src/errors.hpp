// Errors: what a user can be told, with what happened and what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace outpace::ann {

// The arguments cannot be served. Python sees ValueError.
struct BadArgument : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// A file is not an index, or not one this version can read. Python sees outpace.ann.IndexFileError.
struct BadFile : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// An id that is not there, or is there already. Python sees KeyError.
struct BadId : std::out_of_range {
    using std::out_of_range::out_of_range;
};

}  // namespace outpace::ann
