/* kiln.hpp -- C++11 interface: RAII owners, setters for descs, launches.
 *
 * The interface is header-only and uses the C functions, so there is no
 * additional library to link. An owner frees its object when the owner goes out
 * of scope. An owner can be moved but not copied. It converts to the C pointer,
 * so that it can be passed to every C function. `out()` returns the output
 * argument for a function that creates an object:
 *
 *   kiln::runtime rt;
 *   kiln::device device;
 *   kiln::check(kiln_runtime_create(rt.out(), nullptr));
 *   kiln::check(kiln_device_open(device.out(), rt, 0, nullptr));
 *
 * Declare owners in the order of "Life of the objects" in kiln.h, because C++
 * destroys them in the opposite order.
 *
 * C++ has designated initialisers only since C++20. `kiln::make<T>()` returns a
 * desc in which all members are zero. set() assigns one member and returns the
 * desc, so that calls can be chained:
 *
 *   auto sum = kiln::make<kiln_reduce_desc>()
 *                  .set(&kiln_reduce_desc::x, kiln::input({x, KILN_F32}))
 *                  .set(&kiln_reduce_desc::n, n)
 *                  .set(&kiln_reduce_desc::out, kiln_array{total, KILN_F32});
 *   kiln::check(kiln_reduce(stream, sum, nullptr));
 *
 *   kiln::check(kiln::launch(kernel, kiln_launch_1d(n, 256), x, a, n));
 *
 * check() throws a kiln::error if exceptions are enabled. Without exceptions,
 * use the statuses as in C. */
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

/** Owns one object of the C interface and frees the object with the function
 * Free. */
template <typename T, void (*Free)(T *)> class owner
{
public:
  owner() noexcept : object_(nullptr)
  {
  }
  /** Takes ownership of `object`, which may be NULL. */
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

  /** Returns the C pointer without transferring ownership; NULL if the owner is
   * empty. */
  T *get() const noexcept
  {
    return object_;
  }
  operator T *() const noexcept
  {
    return object_;
  }
  /** Frees the owned object and returns the address to pass to a function that
   * creates an object. */
  T **out() noexcept
  {
    reset();
    return &object_;
  }
  /** Frees the owned object and takes ownership of `object`. */
  void reset(T *object = nullptr) noexcept
  {
    Free(object_);
    object_ = object;
  }
  /** Releases ownership: the caller must free the returned object. */
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

/** Owns device memory that kiln_memory_alloc() returned. The device must
 * outlive this owner. */
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

  /** Frees the owned memory and allocates `size` bytes. Returns the statuses of
   * kiln_memory_alloc(). */
  kiln_status alloc(kiln_device *on, size_t size)
  {
    reset();
    device_ = on;
    return kiln_memory_alloc(&address_, on, size);
  }
  /** Frees the owned memory. */
  void reset() noexcept
  {
    if (address_ != 0)
      (void)kiln_memory_free(device_, address_);
    address_ = 0;
  }
  /** Returns the device address, or 0 if the owner is empty. */
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

/** A desc or options struct whose members are initially zero. The object
 * converts to a pointer to the struct, as the C functions expect it. */
template <typename T> class desc
{
public:
  desc() noexcept : value()
  {
  }
  /** Assigns one member of the struct, as in set(&kiln_sort_desc::n, n). */
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

/** Returns a desc or options struct in which every member has its default,
 * zero. */
template <typename T> desc<T> make()
{
  return desc<T>();
}

/** Returns an input that reads the elements of one array without a map. */
inline kiln_input input(kiln_array array)
{
  kiln_input x = kiln_input();

  x.in[0] = array;
  return x;
}

/** Queues a launch of a kernel with the given values as its arguments. The
 * types of the values must be the types of the kernel's parameters; Kiln checks
 * only their sizes. Returns the statuses of kiln_launch(). */
template <typename... Values>
kiln_status launch(kiln_kernel *kernel, const kiln_launch_config &config,
                   const Values &...values)
{
  const kiln_arg args[] = {{&values, sizeof values}..., {nullptr, 0}};

  return kiln_launch(kernel, &config, args, sizeof...(values));
}

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
/** Exception for a failed call. what() returns the message and the hint of the
 * error record. */
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
  /** Returns the status that the failed call returned. */
  kiln_status status() const noexcept
  {
    return status_;
  }

private:
  kiln_status status_;
};

/** Throws a kiln::error for any status except KILN_OK. Call check() in the same
 * thread as the function that returned the status, before any other call of
 * Kiln. */
inline void check(kiln_status status)
{
  if (status != KILN_OK)
    throw error(status);
}
#endif

} // namespace kiln

#endif
