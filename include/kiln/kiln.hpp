/* kiln.hpp -- Kiln from C++11 on: owners that free, setters, launches.
 *
 * Header-only, over the C functions; nothing else to link. An owner frees its object
 * when it goes out of scope, can be moved but not copied, and converts to the C
 * pointer, so that every C function takes it. `out()` is what a creating function
 * fills:
 *
 *   kiln::runtime rt;
 *   kiln::device device;
 *   kiln::check(kiln_runtime_create(rt.out(), nullptr));
 *   kiln::check(kiln_device_open(device.out(), rt, 0, nullptr));
 *
 * Declare owners in the order of "Life of the objects" in kiln.h: C++ then frees them
 * in the opposite order.
 *
 * C++ has designated initialisers from C++20 only. `kiln::make<T>()` starts any desc
 * from zero, and set() assigns one member and returns the rest for the next:
 *
 *   auto sum = kiln::make<kiln_reduce_desc>()
 *                  .set(&kiln_reduce_desc::x, kiln::input({x, KILN_F32}))
 *                  .set(&kiln_reduce_desc::n, n)
 *                  .set(&kiln_reduce_desc::out, kiln_array{total, KILN_F32});
 *   kiln::check(kiln_reduce(stream, sum, nullptr));
 *
 *   kiln::check(kiln::launch(kernel, kiln_launch_1d(n, 256), x, a, n));
 *
 * check() throws a kiln::error where exceptions are enabled. Without exceptions, use
 * the statuses as in C. */
#ifndef KILN_KILN_HPP
#define KILN_KILN_HPP

#include <kiln/kiln.h>

#include <string>
#include <utility>

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#include <stdexcept>
#endif

namespace kiln
{

/** Owns one object of the C interface and frees it with Free. */
template <typename T, void (*Free)(T *)> class owner
{
public:
  owner() noexcept : object_(nullptr)
  {
  }
  /** Takes over `object`, which may be NULL. */
  explicit owner(T *object) noexcept : object_(object)
  {
  }
  owner(owner &&other) noexcept : object_(other.release())
  {
  }
  owner &operator=(owner &&other) noexcept
  {
    if (this != &other)
      reset(other.release());
    return *this;
  }
  owner(const owner &) = delete;
  owner &operator=(const owner &) = delete;
  ~owner()
  {
    Free(object_);
  }

  /** The C pointer, which stays owned; NULL if there is none. */
  T *get() const noexcept
  {
    return object_;
  }
  operator T *() const noexcept
  {
    return object_;
  }
  /** Frees what is owned and returns the place for a creating function. */
  T **out() noexcept
  {
    reset();
    return &object_;
  }
  /** Frees what is owned and takes over `object`. */
  void reset(T *object = nullptr) noexcept
  {
    Free(object_);
    object_ = object;
  }
  /** Gives up ownership: the caller frees the result. */
  T *release() noexcept
  {
    T *const object = object_;
    object_ = nullptr;
    return object;
  }

private:
  T *object_;
};

using runtime = owner<kiln_runtime, kiln_runtime_free>;
using device = owner<kiln_device, kiln_device_free>;
using image = owner<kiln_image, kiln_image_free>;
using job = owner<kiln_job, kiln_job_free>;
using module_ = owner<kiln_module, kiln_module_free>; // `module` is a keyword
using stream = owner<kiln_stream, kiln_stream_free>;
using event = owner<kiln_event, kiln_event_free>;
using graph = owner<kiln_graph, kiln_graph_free>;
using timeline = owner<kiln_timeline, kiln_timeline_free>;
using cuda_array = owner<kiln_cuda_array, kiln_cuda_array_free>;

/** Owns device memory of kiln_memory_alloc(). The device must outlive it. */
class memory
{
public:
  memory() noexcept : device_(nullptr), address_(0)
  {
  }
  memory(memory &&other) noexcept
      : device_(other.device_), address_(other.address_)
  {
    other.address_ = 0;
  }
  memory &operator=(memory &&other) noexcept
  {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    return *this;
  }
  memory(const memory &) = delete;
  memory &operator=(const memory &) = delete;
  ~memory()
  {
    reset();
  }

  /** Frees what is owned and allocates `size` bytes. Statuses of
   * kiln_memory_alloc(). */
  kiln_status alloc(kiln_device *on, size_t size)
  {
    reset();
    device_ = on;
    return kiln_memory_alloc(&address_, on, size);
  }
  /** Frees what is owned. */
  void reset() noexcept
  {
    if (address_ != 0)
      (void)kiln_memory_free(device_, address_);
    address_ = 0;
  }
  /** The device address; 0 if there is none. */
  CUdeviceptr get() const noexcept
  {
    return address_;
  }
  operator CUdeviceptr() const noexcept
  {
    return address_;
  }

private:
  kiln_device *device_;
  CUdeviceptr address_;
};

/** A desc or options struct that starts from zero. Converts to a pointer to it, as
 * the C functions take it. */
template <typename T> class desc
{
public:
  desc() noexcept : value()
  {
  }
  /** Assigns one member: set(&kiln_sort_desc::n, n). */
  template <typename M, typename V> desc &set(M T::*member, V &&to)
  {
    value.*member = static_cast<M>(std::forward<V>(to));
    return *this;
  }
  operator const T *() const noexcept
  {
    return &value;
  }
  T *operator->() noexcept
  {
    return &value;
  }

  T value;
};

/** A desc or options struct in which every member is "default". */
template <typename T> desc<T> make()
{
  return desc<T>();
}

/** An input that reads one array as it is. */
inline kiln_input input(kiln_array array)
{
  kiln_input x = kiln_input();

  x.in[0] = array;
  return x;
}

/** Queues a kernel with the values as its arguments, in order. Their types must be
 * those that the kernel declares; Kiln checks their sizes. Statuses of
 * kiln_launch(). */
template <typename... Values>
kiln_status launch(kiln_kernel *kernel, const kiln_launch_config &config,
                   const Values &...values)
{
  const kiln_arg args[] = {{&values, sizeof values}..., {nullptr, 0}};

  return kiln_launch(kernel, &config, args, sizeof...(values));
}

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
/** A failed call: what() is the record's message and hint. */
class error : public std::runtime_error
{
public:
  explicit error(kiln_status status)
      : std::runtime_error(std::string(kiln_last_error()->message) +
                           (kiln_last_error()->hint[0] == '\0' ? "" : "; ") +
                           kiln_last_error()->hint),
        status_(status)
  {
  }
  /** What the call returned. */
  kiln_status status() const noexcept
  {
    return status_;
  }

private:
  kiln_status status_;
};

/** Throws a kiln::error for any status but KILN_OK. Call it in the thread of the
 * failed call, before any other. */
inline void check(kiln_status status)
{
  if (status != KILN_OK)
    throw error(status);
}
#endif

} // namespace kiln

#endif
