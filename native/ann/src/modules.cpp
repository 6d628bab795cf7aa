#include "modules.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include "errors.hpp"

namespace outpace::ann {
namespace {

void* open_module(const std::string& path) {
    // Local: two modules define the same names.
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char* why = dlerror();
        throw BadArgument("cannot load " + path + ": " + (why ? why : "unknown reason"));
    }
    return handle;
}

[[noreturn]] void refuse(void* handle, const std::string& why) {
    dlclose(handle);  // left open, it would be found again in place of a better one at the same path
    throw BadArgument(why);
}

template <class Table>
const Table* table_of(void* handle, const char* name, const std::string& path) {
    const auto get = reinterpret_cast<const Table* (*)()>(dlsym(handle, name));
    if (!get)
        refuse(handle,
               path + " does not export " + name + "(); see native/ann/include/outpace/ann/slots.hpp");
    const Table* table = get();
    if (table->version != slot_version)
        refuse(handle, path + " was compiled for slot version " + std::to_string(table->version) +
                           ", and this library has version " + std::to_string(slot_version) +
                           "; compile it again");
    return table;
}

}  // namespace

std::vector<std::string> usable_instruction_sets() {
    std::vector<std::string> sets;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi"))
        sets.push_back("avx512");
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        sets.push_back("avx2");
#elif defined(__aarch64__)
    sets.push_back("neon");
#endif
    sets.push_back("scalar");
    return sets;
}

LoadedSlots load_slots(const std::string& folder, const std::string& wanted, const std::string& modules) {
    LoadedSlots loaded;
    const std::vector<std::string> usable = usable_instruction_sets();
    loaded.instruction_set = wanted.empty() ? usable.front() : wanted;
    bool known = false;
    std::string names;
    for (const std::string& name : usable) {
        known |= name == loaded.instruction_set;
        names += (names.empty() ? "" : ", ") + name;
    }
    if (!known)
        throw BadArgument("instruction set '" + loaded.instruction_set +
                          "' cannot run here; this machine has " + names);
    const std::string path = folder + "/" + loaded.instruction_set + ".so";
    void* handle = open_module(path);
    loaded.slots.refine = table_of<RefineTable>(handle, "outpace_ann_refine", path);
    loaded.slots.search = table_of<SearchTable>(handle, "outpace_ann_search", path);
    loaded.slots.construct = table_of<ConstructTable>(handle, "outpace_ann_construct", path);
    if (modules.empty()) return loaded;
    struct stat facts;
    if (stat(modules.c_str(), &facts) == 0 && !S_ISDIR(facts.st_mode))
        throw BadArgument("modules='" + modules + "' is a file; give the folder that it lies in");
    const auto replace = [&](const char* name, auto& slot) {
        using Table = std::remove_const_t<std::remove_pointer_t<std::remove_reference_t<decltype(slot)>>>;
        const std::string file = modules + "/" + name + ".so";
        if (access(file.c_str(), F_OK) != 0) return;
        slot = table_of<Table>(open_module(file), (std::string("outpace_ann_") + name).c_str(), file);
        loaded.replaced += (loaded.replaced.empty() ? "" : " ") + std::string(name);
    };
    replace("refine", loaded.slots.refine);
    replace("search", loaded.slots.search);
    replace("construct", loaded.slots.construct);
    if (loaded.replaced.empty())
        throw BadArgument("modules='" + modules + "' holds none of construct.so, search.so, refine.so");
    return loaded;
}

}  // namespace outpace::ann
