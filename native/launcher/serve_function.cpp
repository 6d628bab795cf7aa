// Theory of operation: the C ABI worker.
//
// The regions are mapped and HELLO is sent before anything of the candidate is in the process. Then come the
// SIGSYS handler, the `loading` filter, dlopen (constructors run here), the `calling` filter, READY. From
// dlopen on nothing in this process can be believed: the judge owns the clock, checks every output and
// accepts a reply only with the nonce it has just sent.
//
// LOAD turns call records into argument arrays, so that GO is a loop of plain indirect calls. GO uses the
// load up: what a call leaves in the output region is its answer, and a second GO would overwrite it.

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bpf.hpp"
#include "channel.hpp"
#include "failure.hpp"
#include "filters.hpp"
#include "serve.hpp"

namespace outpace {
namespace {

using Entry = void (*)(const std::uint64_t* slots, std::uint64_t* result);

// What the SIGSYS handler needs; a handler has no other way to be told.
int reporting_socket = -1;
volatile std::uint64_t current_nonce = 0;

void report_forbidden(int, siginfo_t* information, void*) {
    Channel(reporting_socket)
        .send(current_nonce, Status::forbidden, static_cast<std::uint32_t>(information->si_syscall),
              "a system call was refused");
    _exit(exit_forbidden);
}

void trap_to_judge(int socket) {
    reporting_socket = socket;
    struct sigaction action = {};
    action.sa_sigaction = report_forbidden;
    action.sa_flags = SA_SIGINFO;
    if (sigaction(SIGSYS, &action, nullptr) != 0) {
        fail("cannot catch SIGSYS");
    }
}

struct Regions {
    Region input;
    Region output;
};

// The loaded calls: all arguments in one array, calls pointing into it.
class Batch {
  public:
    // Replaces the batch. Returns what is wrong with the request, or nothing.
    const char* load(const Request& request, const Regions& regions);

    void run(Entry entry) const {
        for (const auto& call : calls_) {
            entry(call.slots, call.result);
        }
    }
    bool empty() const { return calls_.empty(); }
    void clear() { calls_.clear(); }

  private:
    struct Call {
        const std::uint64_t* slots;
        std::uint64_t* result;
    };
    const char* load_record(const CallRecord& record, const std::byte* slots, const Regions& regions);

    std::vector<Call> calls_;
    std::unique_ptr<std::uint64_t[]> arguments_;
    std::uint64_t* next_ = nullptr;
    std::uint64_t ignored_result_ = 0;
};

const char* Batch::load(const Request& request, const Regions& regions) {
    clear();
    if (request.count == 0) {
        return "no call records";
    }
    if (!regions.input.holds(request.offset, request.bytes)) {
        return "the call records lie outside the input region";
    }
    // Every argument has a slot in the request, so this is room enough whatever the records say.
    arguments_ = std::make_unique<std::uint64_t[]>(request.bytes / sizeof(Slot) + 1);
    next_ = arguments_.get();
    std::uint64_t offset = request.offset;
    const std::uint64_t end = request.offset + request.bytes;
    const char* wrong = nullptr;
    for (std::uint32_t index = 0; index < request.count && wrong == nullptr; ++index) {
        CallRecord record;
        if (offset % 8 != 0 || end - offset < sizeof record) {
            wrong = "a call record is misaligned or cut off";
            break;
        }
        std::memcpy(&record, regions.input.base + offset, sizeof record);
        const std::uint64_t slots = std::uint64_t{record.slots} * sizeof(Slot);
        if (record.bytes > end - offset || record.bytes < sizeof record ||
            record.bytes - sizeof record < slots) {
            wrong = "a call record is longer than the request";
            break;
        }
        wrong = load_record(record, regions.input.base + offset + sizeof record, regions);
        offset += record.bytes;
    }
    if (wrong != nullptr) {
        clear();
    }
    return wrong;
}

const char* Batch::load_record(const CallRecord& record, const std::byte* slots, const Regions& regions) {
    Call call{next_, &ignored_result_};
    for (std::uint32_t index = 0; index < record.slots; ++index) {
        Slot slot;
        std::memcpy(&slot, slots + index * sizeof slot, sizeof slot);
        switch (static_cast<SlotKind>(slot.kind)) {
            case SlotKind::immediate:
                *next_++ = slot.value;
                break;
            case SlotKind::input:
                if (!regions.input.holds(slot.value, 0)) {
                    return "an input argument lies outside the input region";
                }
                *next_++ = reinterpret_cast<std::uint64_t>(regions.input.base + slot.value);
                break;
            case SlotKind::output:
                if (!regions.output.holds(slot.value, 0)) {
                    return "an output argument lies outside the output region";
                }
                *next_++ = reinterpret_cast<std::uint64_t>(regions.output.base + slot.value);
                break;
            case SlotKind::result:
                if (index + 1 != record.slots || slot.value % 8 != 0 ||
                    !regions.output.holds(slot.value, 8)) {
                    return "a result must be the last slot, aligned, and inside the output region";
                }
                call.result = reinterpret_cast<std::uint64_t*>(regions.output.base + slot.value);
                break;
            default:
                return "a slot has an unknown kind";
        }
    }
    calls_.push_back(call);
    return nullptr;
}

struct Library {
    Entry call;
    Entry setup;  // may be absent
};

[[noreturn]] void refuse_library(const Channel& judge, const char* why) {
    judge.send(0, Status::load_failed, 0, why);
    fail(why, 0);
}

Library open_library(const char* path, const Channel& judge) {
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        refuse_library(judge, dlerror());
    }
    void* call = dlsym(handle, "outpace_call");
    if (call == nullptr) {
        refuse_library(judge, dlerror());
    }
    return {reinterpret_cast<Entry>(call), reinterpret_cast<Entry>(dlsym(handle, "outpace_setup"))};
}

// The first touch of a page costs as much as filling it, so nobody's calls should be the first to touch.
void populate(const Region& region, std::uint64_t bytes, bool writable) {
    constexpr std::uint64_t page = 4096;
    const std::uint64_t length = std::min(bytes + (page - bytes % page) % page, region.bytes);
#ifdef MADV_POPULATE_WRITE
    if (length == 0 ||
        madvise(region.base, length, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0) {
        return;
    }
#endif
    for (std::uint64_t at = 0; at < length; at += page) {
        volatile std::byte* byte = region.base + at;
        const std::byte value = *byte;
        if (writable) {
            *byte = value;
        }
    }
}

const char* answer(const Request& request, const Regions& regions, const Library& library, Batch& batch) {
    switch (static_cast<Verb>(request.verb)) {
        case Verb::setup: {
            if (library.setup == nullptr) {
                return "the library has no outpace_setup";
            }
            if (request.count != 1) {
                return "SETUP takes exactly one call record";
            }
            if (const char* wrong = batch.load(request, regions)) {
                return wrong;
            }
            batch.run(library.setup);
            batch.clear();
            return nullptr;
        }
        case Verb::load:
            return batch.load(request, regions);
        case Verb::go:
            if (batch.empty()) {
                return "GO without a LOAD before it";
            }
            batch.run(library.call);
            batch.clear();
            return nullptr;
        case Verb::prepare:
            if (!regions.input.holds(0, request.offset) || !regions.output.holds(0, request.bytes)) {
                return "more is to be prepared than the regions hold";
            }
            populate(regions.input, request.offset, false);
            populate(regions.output, request.bytes, true);
            return nullptr;
        case Verb::quit:
            _exit(0);
    }
    return "unknown verb";
}

}  // namespace

void serve_function(const Options& options) {
    const Channel judge(options.socket);
    const Regions regions{map_region(options.input, options.input_bytes, false),
                          map_region(options.output, options.output_bytes, true)};
    const bool threads = options.threads > 1;
    // Built before the candidate's constructors can touch it.
    const auto calling = calling_filter(threads);
    trap_to_judge(options.socket);
    install(loading_filter(threads));
    judge.send(0, Status::hello);

    const Library library = open_library(options.target.front(), judge);
    install(calling);
    judge.send(0, Status::ready);

    Batch batch;
    for (;;) {
        const Request request = judge.receive();
        current_nonce = request.nonce;
        const char* wrong = answer(request, regions, library, batch);
        if (wrong != nullptr) {
            judge.send(request.nonce, Status::fault, 0, wrong);
        } else {
            judge.send(request.nonce, Status::done);
        }
    }
}

}  // namespace outpace
