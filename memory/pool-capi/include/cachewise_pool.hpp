/*
 * cachewise_pool.hpp - a page pool as memory resource of C++17's polymorphic allocators:
 *
 *     cachewise::pool_resource large(pool);
 *     std::pmr::vector<double> table(1 << 20, &large);
 */
#ifndef CACHEWISE_POOL_HPP
#define CACHEWISE_POOL_HPP

#if __cplusplus < 201703L
#error "cachewise_pool.hpp needs C++17 or later"
#endif

#include "cachewise_pool.h"

#include <cstddef>
#include <exception>
#include <memory_resource>

namespace cachewise {

/*
 * Requests of at least `smallest` bytes take a block of the pool. Smaller ones, those aligned to more than a page, and
 * those that the pool has no room for go to `upstream`. Any thread may use it whose upstream any thread may use. It does
 * not own the pool, which must be there until the last block came back. A block that is freed twice ends the program. A child
 * made by fork takes what it asks for from `upstream`, and leaves the parent's blocks as they are.
 */
class pool_resource : public std::pmr::memory_resource {
public:
    explicit pool_resource(cw_pool *pool, std::size_t smallest = 128 * 1024,
                           std::pmr::memory_resource *upstream = std::pmr::get_default_resource()) noexcept
        : pool_(pool), smallest_(smallest), page_(cw_pool_page_size(pool)), upstream_(upstream)
    {
    }

    cw_pool *pool() const noexcept { return pool_; }
    std::pmr::memory_resource *upstream_resource() const noexcept { return upstream_; }

private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        if (bytes >= smallest_ && alignment <= page_)
            if (void *block = cw_pool_alloc_bytes(pool_, bytes))
                return block;
        return upstream_->allocate(bytes, alignment);
    }

    void do_deallocate(void *block, std::size_t bytes, std::size_t alignment) override
    {
        if (!cw_pool_contains(pool_, block))
            return upstream_->deallocate(block, bytes, alignment);
        const int freed = cw_pool_free_bytes(pool_, block, bytes);
        if (freed != CW_OK && freed != CW_EFORKED)
            std::terminate();
    }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
#ifdef __cpp_rtti
        const auto *same = dynamic_cast<const pool_resource *>(&other);
        return same && same->pool_ == pool_ && same->upstream_->is_equal(*upstream_);
#else
        return this == &other;
#endif
    }

    cw_pool *pool_;
    std::size_t smallest_, page_;
    std::pmr::memory_resource *upstream_;
};

} // namespace cachewise

#endif /* CACHEWISE_POOL_HPP */
