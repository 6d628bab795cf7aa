// The independent loop: both functions get the same fresh inputs, with a clock around each call alone.
//
//     loop REFERENCE.so CANDIDATE.so INPUTS MODE OTHER_CORE     writes the nanoseconds of each call to stdout
//
// It shares nothing with the judge: a plain process without a jail, and another clock. Each input is an image
// that is copied to the desk before each call, so that both functions find it at the same addresses. The
// modes differ in who copies it, and in what happens before the call.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <emmintrin.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum mode {
    warm = 0,     // copied by this core, in whose caches it then lies
    sent = 1,     // copied by another core, which then waits, awake
    flushed = 2,  // copied by this core, then put out of all caches
    again = 3,    // copied by this core, and the same call made once before
    posted = 4,   // copied by another core, which then sleeps: the call may use it
};

// As the file has it: this, then the arguments, then the image, each from a multiple of 64 bytes on.
struct round {
    uint64_t first;  // which of the two goes first
    uint64_t arguments, image, bytes, next;
    uint64_t calls, width;  // calls of a bundle, and how many arguments each has
};

typedef void (*Function)(char* desk, const uint64_t* arguments);

// Shared with the process on the other core.
struct errand {
    _Atomic uint64_t asked, done;
    uint64_t image;
    uint64_t bytes;
};

static struct errand* errand;
static const char* file;
static char* desk;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void die(const char* what) {
    perror(what);
    exit(1);
}

static void* shared(uint64_t bytes) {
    void* made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (made == MAP_FAILED) die("mmap");
    return made;
}

static void run_errands(enum mode mode, int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint64_t done = 0;; done++) {
        while (atomic_load(&errand->asked) == done) {
            if (mode == posted) {
                usleep(20);
            } else {
                _mm_pause();
            }
        }
        memcpy(desk, file + errand->image, errand->bytes);
        atomic_store(&errand->done, done + 1);
    }
}

static void send_for(uint64_t image, uint64_t bytes) {
    errand->image = image;
    errand->bytes = bytes;
    const uint64_t number = atomic_fetch_add(&errand->asked, 1) + 1;
    while (atomic_load(&errand->done) != number) _mm_pause();
}

static void deliver(enum mode mode, const struct round* round) {
    if (mode == sent || mode == posted) {
        send_for(round->image, round->bytes);
        return;
    }
    memcpy(desk, file + round->image, round->bytes);
    if (mode == flushed) {
        for (uint64_t at = 0; at < round->bytes; at += 64) _mm_clflush(desk + at);
        _mm_mfence();
    }
}

// How long the other core takes to answer when there is nothing to do: how far away it is.
static uint64_t round_trip(void) {
    const uint64_t begin = now();
    send_for(0, 0);
    return now() - begin;
}

static void make_calls(Function function, const struct round* round) {
    const uint64_t* arguments = (const uint64_t*)(file + round->arguments);
    for (uint64_t call = 0; call < round->calls; call++) {
        function(desk, arguments + call * round->width);
    }
}

// What it is all about.
static void loop(const Function* functions, enum mode mode, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes;) {
        const struct round* round = (const struct round*)(file + at);
        uint64_t took[3] = {0, 0, mode == sent ? round_trip() : 0};
        for (uint64_t turn = 0; turn < 2; turn++) {
            const uint64_t side = round->first ^ turn;
            deliver(mode, round);
            if (mode == again) make_calls(functions[side], round);
            const uint64_t begin = now();
            make_calls(functions[side], round);
            took[side] = now() - begin;
        }
        fwrite(took, sizeof took, 1, stdout);
        at = round->next;
    }
}

static Function function_of(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    Function found = library == NULL ? NULL : (Function)dlsym(library, "honest_call");
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

int main(int count, char** arguments) {
    if (count != 6) return 2;
    const Function functions[2] = {function_of(arguments[1]), function_of(arguments[2])};
    const enum mode mode = (enum mode)atoi(arguments[4]);
    const int input = open(arguments[3], O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (input < 0 || fstat(input, &status) != 0) die(arguments[3]);
    const uint64_t bytes = (uint64_t)status.st_size;
    file = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, input, 0);
    if (file == MAP_FAILED) die("mmap");
    uint64_t widest = 0;
    for (uint64_t at = 0; at < bytes; at = ((const struct round*)(file + at))->next) {
        const uint64_t here = ((const struct round*)(file + at))->bytes;
        if (here > widest) widest = here;
    }
    desk = shared(widest);
    errand = shared(sizeof *errand);
    pid_t writer = 0;
    if (mode == sent || mode == posted) {
        writer = fork();
        if (writer < 0) die("fork");
        if (writer == 0) run_errands(mode, atoi(arguments[5]));
    }
    loop(functions, mode, bytes);
    if (writer != 0) {
        kill(writer, SIGKILL);
        waitpid(writer, NULL, 0);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
