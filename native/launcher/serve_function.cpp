// Theory of operation: the C ABI worker.
//
// The regions are mapped and HELLO is sent before anything of the candidate is in the process. Then come the
// SIGSYS handler, the `loading` filter, dlopen (constructors run here), the `calling` filter, READY. From
// dlopen on nothing in this process can be believed: the judge owns the clock, checks every output and
// accepts a reply only with the nonce it has just sent.
//
// One question at a time: the worker waits for the nonce of the desk, turns the records into argument arrays,
// makes the calls and writes the nonce back. All of that, the waiting included, is on its CPU clock, which is
// the figure; so nothing is gained by looking early, answering early or finishing late.

#include <dlfcn.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bpf.hpp"
#include "channel.hpp"
#include "failure.hpp"
#include "filters.hpp"
#include "landlock.hpp"
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
    Output output;
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

  private:
    struct Call {
        const std::uint64_t* slots;
        std::uint64_t* result;
    };
    const char* load_record(const CallRecord& record, const std::byte* slots, const Regions& regions);

    std::vector<Call> calls_;
    std::unique_ptr<std::uint64_t[]> arguments_;
    std::uint64_t room_ = 0;
    std::uint64_t* next_ = nullptr;
    std::uint64_t ignored_result_ = 0;
};

const char* Batch::load(const Request& request, const Regions& regions) {
    calls_.clear();
    if (request.count == 0) {
        return "no call records";
    }
    if (!regions.input.holds(0, request.records)) {
        return "the call records lie outside the input region";
    }
    // Every argument has a slot in the request, so this is room enough whatever the records say.
    const std::uint64_t most = request.records / sizeof(Slot) + 1;
    if (most > room_) {
        arguments_ = std::make_unique<std::uint64_t[]>(most);
        room_ = most;
    }
    next_ = arguments_.get();
    std::uint64_t offset = 0;
    const std::uint64_t end = request.records;
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
                if (!regions.output.answers.holds(slot.value, 0)) {
                    return "an output argument lies outside the output region";
                }
                *next_++ = reinterpret_cast<std::uint64_t>(regions.output.answers.base + slot.value);
                break;
            case SlotKind::result:
                if (index + 1 != record.slots || slot.value % 8 != 0 ||
                    !regions.output.answers.holds(slot.value, 8)) {
                    return "a result must be the last slot, aligned, and inside the output region";
                }
                call.result = reinterpret_cast<std::uint64_t*>(regions.output.answers.base + slot.value);
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
    int* glue;    // may be absent; see glue_keeps
};

// What a library with glue does beside its work: its function's answer is kept, or given again uncalled.
constexpr int glue_keeps = 1;
constexpr int glue_alone = 2;

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
    return {reinterpret_cast<Entry>(call), reinterpret_cast<Entry>(dlsym(handle, "outpace_setup")),
            static_cast<int*>(dlsym(handle, "outpace_glue"))};
}

// About ten microseconds.
constexpr int looks_before_sleep = 400;

// Waits until another question than the last one lies on the desk.
Request next_question(Desk* desk, std::uint32_t last, bool sleep) {
    const std::atomic_ref<std::uint32_t> nonce(desk->question.nonce);
    for (int looks = sleep ? looks_before_sleep : 0; nonce.load(std::memory_order_acquire) == last; ++looks) {
        if (looks < looks_before_sleep) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        } else {
            syscall(SYS_futex, &desk->question.nonce, FUTEX_WAIT, last, nullptr, nullptr, 0);
        }
    }
    Request request;
    std::memcpy(&request, &desk->question, sizeof request);
    return request;
}

std::uint64_t own_cpu_clock() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// Says on the desk what the glue takes, with the answers at hand.
void measure_glue(const Library& library, const Batch& batch, Desk* desk) {
    *library.glue = glue_keeps;
    batch.run(library.call);
    *library.glue = glue_alone;
    const std::uint64_t begin = own_cpu_clock();
    batch.run(library.call);
    const std::uint64_t taken = own_cpu_clock() - begin;
    *library.glue = 0;
    std::atomic_ref(desk->converting)
        .store(static_cast<std::uint32_t>(std::min<std::uint64_t>(taken, UINT32_MAX)),
               std::memory_order_relaxed);
}

const char* answer(const Request& request, const Regions& regions, const Library& library, Batch& batch) {
    const bool setup = (request.flags & is_setup) != 0;
    if (setup && (library.setup == nullptr || request.count != 1)) {
        return "a set-up call wants outpace_setup in the library, and one record";
    }
    const Region& input = regions.input;
    if (!input.holds(request.base, 0)) {
        return "the question lies outside the input region";
    }
    if (const char* wrong =
            batch.load(request, {{input.base + request.base, input.bytes - request.base}, regions.output})) {
        return wrong;
    }
    if ((request.flags & converts) != 0 && library.glue != nullptr) {
        measure_glue(library, batch, regions.output.desk);
        return nullptr;
    }
    batch.run(setup ? library.setup : library.call);
    return nullptr;
}

// Lets malloc know, as every caller that makes inputs and frees them does, that blocks so large come and go:
// it then keeps what is freed, up to as much again, instead of having the kernel take it back and clear it
// anew. Whoever freed nothing so large would pay for each page of a call's temporaries, call after call.
// Never touched.
void make_and_free(std::uint64_t bytes) {
    void* volatile block = std::malloc(bytes);
    std::free(block);
}

}  // namespace

void serve_function(const Options& options) {
    const Channel judge(options.socket);
    const Regions regions{map_region(options.input, options.input_bytes, false, options.populate_input),
                          map_output(options.output, options.output_bytes, options.populate_output)};
    const bool threads = options.threads > 1;
    // Built before the candidate's constructors can touch it.
    const auto calling = calling_filter(threads);
    make_and_free(options.freed);
    take_on(rules_that_hide_processes());
    trap_to_judge(options.socket);
    install(loading_filter(threads));
    judge.greet();

    const Library library = open_library(options.target.front(), judge);
    install(calling);
    judge.send(0, Status::ready);

    Batch batch;
    Desk* desk = regions.output.desk;
    bool sleep = true;
    for (std::uint32_t last = 0;;) {
        const Request request = next_question(desk, last, sleep);
        last = request.nonce;
        sleep = (request.flags & sleep_next) != 0;
        current_nonce = request.nonce;
        if (const char* wrong = answer(request, regions, library, batch)) {
            judge.send(request.nonce, Status::fault, 0, wrong);
            continue;
        }
        std::atomic_ref(desk->answered).store(request.nonce, std::memory_order_release);
        if ((request.flags & wants_reply) != 0) {
            judge.send(request.nonce, Status::done);
        }
    }
}

}  // namespace outpace
