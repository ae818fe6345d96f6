// Integer and bit operations.
extern "C" __global__ void bits(const unsigned *in, unsigned *out, int n)
{
  const unsigned t = threadIdx.x, a = in[t], b = in[n - 1 - t];
  const unsigned long long w = (unsigned long long)a << 32 | b;
  unsigned *o = out + t * 16;

  o[0] = __popc(a) + (__popcll(w) << 8);
  o[1] = __clz(a >> (t % 32)) + (__clzll(w >> t) << 8);
  o[2] = __brev(a);
  o[3] = __ffs(a & 0xfff0) + (__ffsll(w << t) << 8);
  o[4] = __byte_perm(a, b, 0x6174);
  o[5] = __funnelshift_l(a, b, t);
  o[6] = __umulhi(a, b);
  o[7] = (unsigned)__mulhi((int)a, (int)b);
  o[8] = (unsigned)(__umul64hi(w, ~w) >> 16);
  o[9] = a / (b % 1000 + 1) + a % (b % 777 + 1);
  o[10] = (unsigned)(w / (a % 99991 + 1)) + (unsigned)(w % (b | 1));
  o[11] = __dp4a(a, b, 7u);
  o[12] = __usad(a, b, 3u);
  o[13] = (unsigned)((int)a >> 5) ^ b << t % 32;
  o[14] = (unsigned)min((int)a, (int)b) ^ max(a, b);
  o[15] = __vadd4(a, b) ^ __vabsdiffu4(a, b) ^ __vsadu4(a, b);
}
