// The feeder: asks one worker one question at a time, and reads its clocks.
//
// Theory of operation. It runs in the judge. The worker is stopped when a turn begins and stopped again when
// it ends. In between, each question is copied into the input region, laid on the desk, and waited for; its
// answer is copied out before the next one is written. So no part of a question is in the worker's address
// space before the answer to the last one has left it.
//
// The figure is the worker's CPU clock over the whole turn, or the wall clock where it may use threads. No
// time is taken off it. Looking at a question while it is written, answering early, or working on after the
// answer burns CPU time that counts; with threads the worker is stopped while a question is written and while
// an answer is read.
//
// Two ways to wake a worker that has gone to sleep: a futex on the desk, or a message on its socket for those
// who cannot sleep on a futex (a Python worker, a command server).
//
// Two ways to wait. As a rule both share the worker's core and take turns, each asleep while the other works.
// So a worker cannot run while a question is written or an answer is read, and inputs lie in its own core's
// caches, as they do where a caller has just made them. With a core to itself it could work in the meantime,
// on a question that is being copied (a hijacked worker gained 19% so) or on what an early answer left to do
// (11% of a call of 5 us), while the honest one spins. Workers with threads may need all cores: they are
// stopped in the meantime instead, and the feeder polls the desk.

#include <dirent.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "../launcher/message.hpp"
#include "kept.hpp"
#include "memory.hpp"
#include "process.hpp"
#include "turn.hpp"

namespace outpace {
namespace {

// Nanoseconds that the worker may wait for its core in a handover.
constexpr std::uint64_t handover = 5'000;

// A worker that has not stopped after so long is in a sleep that no signal ends, and is killed.
constexpr std::uint64_t stop_limit = 10'000'000'000;

class Conversation {
  public:
    explicit Conversation(const Worker& worker)
        : worker_(worker),
          desk_(reinterpret_cast<Desk*>(worker.output)),
          name_(std::to_string(worker.pid)),
          memory_(worker.pid) {}

    // Goes to the core it is to feed from for as long as it lives.
    class Place {
      public:
        explicit Place(std::int64_t core) {
            cpu_set_t wanted;
            CPU_ZERO(&wanted);
            if (core >= 0 && sched_getaffinity(0, sizeof before_, &before_) == 0) {
                CPU_SET(static_cast<std::size_t>(core), &wanted);
                moved_ = sched_setaffinity(0, sizeof wanted, &wanted) == 0;
            }
        }
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;
        ~Place() {
            if (moved_) {
                sched_setaffinity(0, sizeof before_, &before_);
            }
        }

      private:
        cpu_set_t before_{};
        bool moved_ = false;
    };

    int ask(const Question* questions, std::uint64_t count, std::byte* answers, std::uint64_t room,
            std::uint64_t* lengths, std::uint64_t* clocks, Turn* turn) {
        const Place place(worker_.core);
        if (!draw_nonces(count)) {
            return unreadable;
        }
        const Delays before = delays(cpu_clock(worker_.pid));
        const bool apart = worker_.threads != 0;
        int outcome = finished;
        std::uint64_t base = worker_.kept;
        std::uint64_t begin = wall_clock();
        until_ = begin + worker_.turn_limit;
        may_fetch_ = memory_.readable();
        if (!apart) {
            signal(SIGCONT);
        }
        for (; turn->asked < count && outcome == finished; ++turn->asked) {
            const Question& question = questions[turn->asked];
            const bool setup = (question.flags & is_setup) != 0;
            base = setup ? 0 : base;
            if (base > worker_.input_bytes || question.bytes > worker_.input_bytes - base ||
                question.blank_bytes > worker_.output_bytes - desk_bytes) {
                outcome = too_long;
                break;
            }
            // The question last: a worker that looks for it instead of the nonce must not gain by that.
            std::memcpy(worker_.output + desk_bytes, question.blank, question.blank_bytes);
            std::memcpy(worker_.input + base, question.data, question.bytes);
            if (apart) {
                begin = wall_clock();
                signal(SIGCONT);
            }
            outcome = put(question, base, nonces_[turn->asked], turn->asked + 1 == count);
            if (setup) {
                base = in_whole_pages(question.bytes);
            }
            clocks[turn->asked] = cpu_clock(worker_.pid);
            if (apart) {
                // Whoever has nothing left to do is done. To stop a sleeper takes some tens of microseconds,
                // which would be on its clock, and a worker that stops itself would save them.
                const bool at_rest = rests();
                const std::uint64_t end = wall_clock();
                const std::uint64_t spent = cpu_clock(worker_.pid);
                outcome = stop() || outcome != finished ? outcome : speaks;
                // One that was asleep when it was looked at may have woken up since, into a system call that
                // no signal ends: whatever it did until it had stopped counts too.
                turn->wall += at_rest ? end - begin + (cpu_clock(worker_.pid) - spent) : wall_clock() - begin;
            }
            if (outcome == finished) {
                outcome = take(question, answers, room, lengths, turn);
            }
            if (outcome != finished) {
                break;
            }
        }
        const bool stopped = stop();
        if (outcome == finished && stopped && !kept_.stand(memory_)) {
            outcome = changed;
        }
        if (!apart) {
            turn->wall += wall_clock() - begin;
        }
        turn->cpu = cpu_clock(worker_.pid);
        turn->delay = delays(turn->cpu).since(before, turn->asked);
        turn->resident = resident_bytes(worker_.pid);
        return outcome == finished && (!stopped || turn->cpu == 0) ? speaks : outcome;
    }

  private:
    // Lays one question on the desk and waits until it is answered.
    int put(const Question& question, std::uint64_t base, std::uint32_t nonce, bool last) {
        Request request{};
        request.count = question.count;
        request.records = question.records;
        request.base = static_cast<std::uint32_t>(base);
        request.flags =
            question.flags | (worker_.replies != 0 ? wants_reply : 0) | (may_fetch_ ? fetches : 0);
        if (last || worker_.replies != 0) {
            request.flags |= sleep_next;
        }
        request.flags |= kept_.what_to_keep();
        request.nonce = desk_->question.nonce;
        std::memcpy(&desk_->question, &request, sizeof request);
        std::atomic_ref(desk_->question.nonce).store(nonce, std::memory_order_release);
        if (worker_.by_message != 0) {
            // One for each question: those who sleep on their socket always do. It fails when the worker is
            // gone.
            const char message = 0;
            send(worker_.socket, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
        } else {
            syscall(SYS_futex, &desk_->question.nonce, FUTEX_WAKE, 1, nullptr, nullptr, 0);
        }
        const std::uint64_t now = wall_clock();
        const std::uint64_t until = std::min(now + worker_.limit * question.count, until_);
        return worker_.replies != 0 ? sleep_until(nonce, until) : poll_until(nonce, until);
    }

    // One for each question, not to be foretold: an answer given before the question must not fit. Drawn
    // before the first, because a worker could use the time between a question and its nonce.
    bool draw_nonces(std::uint64_t count) {
        nonces_.assign(count, 0);
        std::uint32_t last = desk_->answered;
        for (std::uint32_t& nonce : nonces_) {
            // Neither none nor the last one: that would seem to be answered already.
            while (nonce == 0 || nonce == last) {
                if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) {
                    return false;
                }
            }
            last = nonce;
        }
        return true;
    }

    bool answered(std::uint32_t nonce) const {
        return std::atomic_ref(desk_->answered).load(std::memory_order_acquire) == nonce;
    }

    int poll_until(std::uint32_t nonce, std::uint64_t until) const {
        for (std::uint64_t looks = 1; !answered(nonce); ++looks) {
            // A message can wait a little: it only ever says that there will be no answer.
            if (looks % 512 == 0) {
                if (a_message_waits()) {
                    return answered(nonce) ? finished : speaks;
                }
                if (wall_clock() > until) {
                    return timed_out;
                }
            }
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        return finished;
    }

    int sleep_until(std::uint32_t nonce, std::uint64_t until) const {
        for (;;) {
            const std::uint64_t now = wall_clock();
            if (now > until) {
                return timed_out;
            }
            pollfd readable{worker_.socket, POLLIN, 0};
            const auto left =
                static_cast<int>(std::min<std::uint64_t>((until - now) / 1'000'000 + 1, 60'000));
            if (poll(&readable, 1, left) <= 0) {
                continue;
            }
            Reply reply{};
            if (recv(worker_.socket, &reply, sizeof reply, MSG_PEEK | MSG_DONTWAIT) !=
                    static_cast<ssize_t>(sizeof reply) ||
                reply.nonce != nonce || reply.status != static_cast<std::uint32_t>(Status::done) ||
                !answered(nonce)) {
                return speaks;
            }
            if (recv(worker_.socket, &reply, sizeof reply, MSG_DONTWAIT) < 0) {
                return speaks;
            }
            return finished;
        }
    }

    bool a_message_waits() const {
        char byte = 0;
        return recv(worker_.socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
               (errno != EAGAIN && errno != EINTR);
    }

    int take(const Question& question, std::byte* answers, std::uint64_t room, std::uint64_t* lengths,
             Turn* turn) {
        std::uint64_t bytes = question.answer_bytes;
        if (bytes == any_length) {
            bytes = std::atomic_ref(desk_->bytes).load(std::memory_order_relaxed);
        }
        if (bytes > worker_.output_bytes - desk_bytes) {
            return too_long;
        }
        // Read once: the worker could change its mind.
        const bool fixed = question.answer_bytes != any_length;
        const std::uint64_t pieces =
            fixed ? 0 : std::atomic_ref(desk_->pieces).load(std::memory_order_relaxed);
        if (pieces > most_pieces) {
            return unreadable_answer;
        }
        const std::uint64_t list = fixed ? 0 : pieces * sizeof(Range) + sizeof pieces;
        if (bytes + list > room - turn->used) {
            return no_room;
        }
        std::byte* answer = answers + turn->used;
        if (!copy_answer(question, answer, bytes, pieces, turn)) {
            return unreadable_answer;
        }
        if (!fixed) {
            std::memcpy(answer + bytes + list - sizeof pieces, &pieces, sizeof pieces);
        }
        if ((question.flags & converts) != 0) {
            turn->converting += std::atomic_ref(desk_->converting).load(std::memory_order_relaxed);
            turn->calling += std::atomic_ref(desk_->calling).load(std::memory_order_relaxed);
        }
        lengths[turn->asked] = bytes + list;
        turn->used += bytes + list;
        return finished;
    }

    // What both worked and waited for a core.
    struct Delays {
        std::uint64_t worked;
        std::uint64_t waited;
        std::uint64_t own_work;
        std::uint64_t own_wait;

        // How much of the time since then, over so many questions, the worker neither worked nor slept. On
        // one core the one waits while the other works, and that is in the other's work already: woken in the
        // middle of a system call of ours, the worker waits for its end, or lets us wait for its whole call.
        std::uint64_t since(const Delays& then, std::uint64_t questions) const {
            const std::uint64_t theirs = waited - then.waited;
            const std::uint64_t ours = own_wait - then.own_wait;
            return own_work - then.own_work + (theirs - std::min(theirs, questions * handover)) +
                   (ours - std::min(ours, worked - then.worked));
        }
    };
    Delays delays(std::uint64_t worked) const {
        return {worked, run_delay(name_), own_cpu_clock(), run_delay("thread-self")};
    }

    // Copies an answer out of the region, and what lies elsewhere in the worker's memory from there; behind
    // it stands where those pieces belong, for whoever reads it. Room that is left for them in the region is
    // not copied: it would only drive other things from the caches.
    //
    // Whoever can move his pages in the meantime, from what was read to what is spoiled, gives nothing away:
    // where there are pieces the worker sleeps first, and has not run when all is done.
    bool copy_answer(const Question& question, std::byte* answer, std::uint64_t bytes, std::uint64_t pieces,
                     Turn* turn) {
        if (pieces != 0 && worker_.threads == 0 && !asleep()) {
            return false;
        }
        const std::uint64_t spent = cpu_clock(worker_.pid);
        const bool copied = copy_parts(question, answer, bytes, pieces, turn);
        return copied && (pieces == 0 || cpu_clock(worker_.pid) == spent);
    }

    // Waits until the worker, which has answered, has gone to sleep.
    bool asleep() const {
        constexpr int most_looks = 10'000;
        const timespec moment{0, 20'000};
        for (int looks = 0; looks < most_looks && state_of(name_) != 'S'; ++looks) {
            nanosleep(&moment, nullptr);
        }
        return state_of(name_) == 'S';
    }

    bool copy_parts(const Question& question, std::byte* answer, std::uint64_t bytes, std::uint64_t pieces,
                    Turn* turn) {
        std::byte* region = worker_.output + desk_bytes;
        std::uint64_t done = 0;
        std::vector<Range> places;
        memory_.look_anew();
        const auto copy_until = [&](std::uint64_t end) {
            std::memcpy(answer + done, region + done, end - done);
            if (question.answer_bytes == any_length) {
                memory_.spoil(region + done, end - done);  // others begin anew with a blank
            }
        };
        for (std::uint64_t index = 0; index < pieces; ++index) {
            Piece piece;
            std::memcpy(&piece, worker_.output + pieces_at + index * sizeof piece, sizeof piece);
            if (piece.offset < done || piece.offset > bytes || piece.bytes > bytes - piece.offset) {
                return false;
            }
            copy_until(piece.offset);
            std::uint64_t address = 0;
            if (!memory_.read(&address, piece.pointer, sizeof address) ||
                !memory_.fetch(answer + piece.offset, address, piece.bytes, &turn->faults)) {
                return false;
            }
            if (piece.bytes != 0) {
                places.push_back({address, piece.bytes});
            }
            const Range range{piece.offset, piece.bytes};
            std::memcpy(answer + bytes + index * sizeof range, &range, sizeof range);
            done = piece.offset + piece.bytes;
        }
        copy_until(bytes);
        kept_.given_away(places);
        // What was answered was given away: neither the worker nor what it serves may rely on it any more.
        return are_apart(places) && std::all_of(places.begin(), places.end(), [this](const Range& place) {
                   return memory_.spoil(place.offset, place.bytes);
               });
    }

    // Whether none of these overlap: arrays of one answer that share their elements are fewer than were asked
    // for.
    static bool are_apart(std::vector<Range>& places) {
        const auto earlier = [](const Range& one, const Range& other) { return one.offset < other.offset; };
        std::sort(places.begin(), places.end(), earlier);
        const auto overlap = [](const Range& one, const Range& next) {
            return next.offset - one.offset < one.bytes;
        };
        return std::adjacent_find(places.begin(), places.end(), overlap) == places.end();
    }

    void signal(int number) const { syscall(SYS_pidfd_send_signal, worker_.handle, number, nullptr, 0); }

    // Stops the worker and waits until it has stopped: before that it may still compute. False when it is
    // gone.
    bool stop() const {
        signal(SIGSTOP);
        const std::uint64_t patience = wall_clock() + stop_limit;
        for (;;) {
            if (wall_clock() > patience) {
                signal(SIGKILL);
            }
            // By its handle: once it is gone its number may be another's.
            pollfd ended{worker_.handle, POLLIN, 0};
            if (poll(&ended, 1, 0) != 0) {
                return false;
            }
            bool running = false;
            for (const std::string& process : processes()) {
                const char state = state_of(process);
                if (state == '?' || state == 'Z' || state == 'X') {
                    if (process == name_) {
                        return false;
                    }
                    continue;  // a thread that has ended
                }
                running = running || (state != 'T' && state != 't');
            }
            if (!running) {
                return true;
            }
            // On one core it needs that core to stop.
            if (worker_.replies != 0) {
                const timespec moment{0, 20'000};
                nanosleep(&moment, nullptr);
            } else {
                sched_yield();
            }
        }
    }

    // Whether none of the worker's threads wants a core.
    bool rests() const {
        for (const std::string& process : processes()) {
            const char state = state_of(process);
            if (state == 'R' || state == 'D') {
                return false;
            }
        }
        return true;
    }

    // The worker itself, and where it may have threads each of them.
    std::vector<std::string> processes() const {
        if (worker_.threads == 0) {
            return {name_};
        }
        std::vector<std::string> found;
        const std::string folder = name_ + "/task";
        if (DIR* tasks = opendir(("/proc/" + folder).c_str())) {
            while (const dirent* entry = readdir(tasks)) {
                if (entry->d_name[0] != '.') {
                    found.push_back(folder + '/' + entry->d_name);
                }
            }
            closedir(tasks);
        }
        found.push_back(name_);
        return found;
    }

    const Worker& worker_;
    Desk* desk_;
    std::string name_;
    std::uint64_t until_ = 0;
    bool may_fetch_ = false;
    Memory memory_;
    std::vector<std::uint32_t> nonces_;
    Kept kept_;
};

}  // namespace
}  // namespace outpace

// One turn of a stopped worker: asks the questions in order and stops it again. `lengths` and `clocks` have
// room for one number per question: of its answer, and what the worker's clock said then. Returns an Outcome;
// `turn` tells how far it came.
extern "C" __attribute__((visibility("default"))) int outpace_feed(const outpace::Worker* worker,
                                                                   const outpace::Question* questions,
                                                                   std::uint64_t count, std::byte* answers,
                                                                   std::uint64_t room, std::uint64_t* lengths,
                                                                   std::uint64_t* clocks,
                                                                   outpace::Turn* turn) {
    return outpace::Conversation(*worker).ask(questions, count, answers, room, lengths, clocks, turn);
}
