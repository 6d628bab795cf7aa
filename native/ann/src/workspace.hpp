// Workspace: what one query needs beside the index; borrowed for the time of a call and used again.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <vector>

#include "index.hpp"

namespace outpace::ann {

struct Index::Workspace {
    explicit Workspace(const SearchTable* table) : search(table), scratch(table->make_scratch()) {
        query = std::make_unique<QueryCodes>();
    }
    ~Workspace() { search->free_scratch(scratch); }
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    const SearchTable* search;
    Scratch* scratch;
    std::unique_ptr<QueryCodes> query;
    std::vector<float> given, working;
    std::vector<Slot> slots;
    std::vector<float> distances;
    std::vector<Key> keys, joined;
    bool astray = false;  // a new vector's walk ended among removed ones
    Counters counters;
};

class Index::Borrowed {
  public:
    explicit Borrowed(const Index& index) : index_(index) {
        {
            const std::lock_guard guard(index.pool_lock_);
            if (!index.pool_.empty()) {
                work_ = std::move(index.pool_.back());
                index.pool_.pop_back();
            }
        }
        if (!work_) work_ = std::make_unique<Workspace>(index.slots_.search);
    }
    // One in which an exception was thrown is not used again: it may hold half of a search.
    ~Borrowed() {
        if (std::uncaught_exceptions() > thrown_before_) return;
        const std::lock_guard guard(index_.pool_lock_);
        try {
            index_.pool_.push_back(std::move(work_));
        } catch (const std::bad_alloc&) {  // the next search makes its own
        }
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    Workspace& operator*() { return *work_; }
    Workspace* operator->() { return work_.get(); }

  private:
    const Index& index_;
    const int thrown_before_ = std::uncaught_exceptions();
    std::unique_ptr<Workspace> work_;
};

}  // namespace outpace::ann
