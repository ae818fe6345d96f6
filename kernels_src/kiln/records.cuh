/* records.cuh -- the connection between kiln::record, which kernels move, and the C++
 * type of a struct, which only the user's preamble declares. The library includes this
 * header if a call has structs.
 *
 * Idea: kernels handle bytes. The functions around the user's expressions convert them
 * to the C++ type and back, which costs nothing, since all of them are inlined. The
 * library specialises kiln__named for each struct that has a name. A struct without a
 * name stays a kiln::record in expressions.
 * All names begin with kiln__, since the preamble may define any other macro. */
#ifndef KILN_RECORDS_CUH
#define KILN_RECORDS_CUH

#include <kiln/types.cuh>

template <unsigned size, unsigned align, unsigned number>
using kiln__record = kiln::record<size, align, number>;

template <class T> struct kiln__named {
  typedef T kiln__type;
};
template <class T> using kiln__c = typename kiln__named<T>::kiln__type;

/* The library specialises this template for the layout that the kiln_dtype of a struct
 * states. An instance for another layout is an error, whose message contains the size and
 * the alignment of the C++ type. */
template <unsigned kiln__number, unsigned kiln__size, unsigned kiln__align>
struct kiln__layout {
  static_assert(kiln__size == 0, "a struct has another layout");
  typedef int kiln__right;
};

template <class T>
static __device__ __forceinline__ kiln__c<T> kiln__unpack(const T &from)
{
  kiln__c<T> to;

  memcpy(&to, &from, sizeof to);
  return to;
}

template <class T>
static __device__ __forceinline__ T kiln__pack(const kiln__c<T> &from)
{
  T to;

  static_assert(__is_trivially_copyable(kiln__c<T>),
                "the type of an element must be trivially copyable");
  memcpy(&to, &from, sizeof to);
  return to;
}

#endif
