// One turn as judge/feeder.py and the feeder see it: who is asked, what, and what came of it. The Python side
// packs the same structs by hand, so no field may move.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outpace {

// What the Python side packs; see judge/feeder.py.
struct Worker {
    std::byte* input;
    std::byte* output;
    std::uint64_t input_bytes;
    std::uint64_t output_bytes;
    std::int32_t pid;
    std::int32_t handle;  // pidfd
    std::int32_t socket;
    std::uint32_t by_message;  // wake it by a message
    std::uint32_t replies;     // wait for its DONE instead of polling
    std::uint32_t threads;     // stop it between questions
    std::uint64_t kept;        // bytes of the input region in which its set-up lies
    std::uint64_t limit;       // nanoseconds for one call
    std::uint64_t turn_limit;  // and for all of a turn
    std::int64_t core;         // to feed from; -1: from wherever we are
};

struct Question {
    const std::byte* data;
    std::uint64_t bytes;
    std::uint64_t records;
    const std::byte* blank;  // what the output region starts with
    std::uint64_t blank_bytes;
    std::uint64_t answer_bytes;  // any_length: as many as the worker says
    std::uint32_t count;
    std::uint32_t flags;
};
constexpr std::uint64_t any_length = UINT64_MAX;

// Later questions begin on a page of their own; judge/feeder.py reckons the same.
constexpr std::uint64_t in_whole_pages(std::uint64_t bytes) {
    return (bytes + 4095) / 4096 * 4096;
}

// Which part of an answer was fetched. Answers of no fixed length end with these and their number.
struct Range {
    std::uint64_t offset;
    std::uint64_t bytes;
};

struct Turn {
    std::uint64_t wall;
    std::uint64_t cpu;         // the worker's clock at the end, since it began to live
    std::uint64_t delay;       // when the worker neither worked nor slept: others worked, the feeder for one
    std::uint64_t resident;    // bytes of memory at the end
    std::uint64_t asked;       // questions that were answered
    std::uint64_t used;        // bytes of `answers`
    std::uint64_t faults;      // pages of answers that the worker had never touched
    std::uint64_t converting;  // nanoseconds, in the worker's own words: only the reference is asked
    std::uint64_t calling;     // likewise
};

enum Outcome : int {
    finished = 0,
    speaks = 1,             // the worker sent a message that was not asked for, or is gone
    timed_out = 2,          // a question or the turn took longer than its limit
    no_room = 3,            // the next answer does not fit what is left of `answers`
    too_long = 4,           // the worker claims an answer longer than its region
    unreadable = 5,         // the kernel does not tell the worker's state
    unreadable_answer = 6,  // a part of an answer does not lie where the worker says
    changed = 7,            // what was given away, and is still kept, was changed
};

}  // namespace outpace
