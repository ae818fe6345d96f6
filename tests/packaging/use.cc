#include <kiln/kiln.hpp>
kiln_status start(kiln_kernel *kernel, const kiln_launch_config &config)
{
  return KILN_LAUNCH(kernel, &config);
}
kiln_status run(float a, CUdeviceptr x, uint64_t n)
{
  kiln::runtime rt;
  kiln::device device;
  kiln::stream stream;
  kiln::module_ module;
  kiln::memory total;
  kiln_kernel *kernel = nullptr;
  auto opts = kiln::make<kiln_runtime_opts>()
                  .set(&kiln_runtime_opts::cache_off, true)
                  .set(&kiln_runtime_opts::cache_dir, "x");
  auto sum =
      kiln::make<kiln_reduce_desc>()
          .set(&kiln_reduce_desc::x, kiln::input({x, KILN_F32}))
          .set(&kiln_reduce_desc::n, n)
          .set(&kiln_reduce_desc::out, kiln_array{total.get(), KILN_F32});
  kiln::check(kiln_runtime_create(rt.out(), opts));
  kiln::check(kiln_device_open(device.out(), rt, 0, nullptr));
  kiln::check(kiln_stream_create(stream.out(), device, nullptr));
  kiln::check(total.alloc(device, 4));
  kiln::check(kiln_reduce(stream, sum, nullptr));
  kiln::stream moved = std::move(stream);
  const kiln_launch_config config = kiln_launch_1d(n, 256);
  kiln::check(kiln::launch(kernel, config, x, a, n));
  kiln::check(kiln::launch(kernel, config));
  kiln::check(KILN_LAUNCH(kernel, &config, KILN_ARG(a), KILN_ARG(x)));
  return start(kernel, config);
}
int main()
{
  return 0;
}
