// The wire: what judge and worker say to each other over one SOCK_SEQPACKET socket, and how calls lie in
// the input region. Little-endian, natural alignment, one struct per message. The Python side packs the
// same structs by hand, so no field may move.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outpace {

enum class Verb : std::uint32_t {
    setup = 1,
    load = 2,
    go = 3,
    quit = 4,
    // Map `offset` bytes of the input region and `bytes` of the output region before anything stands in them.
    prepare = 5,
};

struct Request {
    std::uint64_t nonce;
    std::uint32_t verb;
    std::uint32_t count;   // call records
    std::uint64_t offset;  // of the first one, in the input region
    std::uint64_t bytes;   // of all of them
};
static_assert(sizeof(Request) == 32);

enum class Status : std::uint32_t {
    done = 0,
    hello = 1,        // limits and the first filter are in force, nothing of the candidate is loaded
    ready = 2,        // the candidate is loaded, the last filter is in force
    load_failed = 3,  // the dynamic loader refused the library; text says why
    forbidden = 4,    // a system call was trapped; detail is its number
    fault = 5,        // the request makes no sense; text says why
    call_failed = 6,  // call number `detail` could not be made; text says why
};

struct Reply {
    std::uint64_t nonce;
    std::uint32_t status;
    std::uint32_t detail;
    std::uint64_t value;
    char text[232];
};
static_assert(sizeof(Reply) == 256);

// A call of a function: the header, then its slots.
struct CallRecord {
    std::uint32_t slots;
    std::uint32_t reserved;
    std::uint64_t bytes;  // header and slots
};
static_assert(sizeof(CallRecord) == 16);

enum class SlotKind : std::uint32_t {
    immediate = 0,  // these 64 bits
    input = 1,      // pointer to this offset of the input region
    output = 2,     // pointer to this offset of the output region
    result = 3,     // no argument: that offset of the output region receives the return value; always last
};

struct Slot {
    std::uint32_t kind;
    std::uint32_t reserved;
    std::uint64_t value;
};
static_assert(sizeof(Slot) == 16);

// A call of a command: the header, its parts, then the data they point to.
struct CommandRecord {
    std::uint32_t parts;
    std::uint32_t reserved;
    std::uint64_t bytes;  // header, parts and data
};
static_assert(sizeof(CommandRecord) == 16);

enum class PartKind : std::uint32_t {
    standard_input = 1,   // content
    file = 2,             // name and content, permission bits in mode
    argument = 3,         // content, appended to the command line in order
    standard_output = 4,  // out region: length, then the bytes
    output_file = 5,      // name; out region as for standard_output
    exit_status = 6,      // out region: int64, exit code or 128 + signal
    usage = 7,  // out region: CPU nanoseconds of the tree, wall nanoseconds, its first process's run delay
};

struct Part {
    std::uint32_t kind;
    std::uint32_t mode;
    std::uint64_t offset;  // content, in the input region
    std::uint64_t bytes;
    std::uint64_t out_offset;
    std::uint64_t out_bytes;
    std::uint64_t name_offset;
    std::uint64_t name_bytes;
};
static_assert(sizeof(Part) == 56);

constexpr std::uint64_t output_too_long = UINT64_MAX;
constexpr std::uint64_t output_missing = UINT64_MAX - 1;

}  // namespace outpace
