/* fake_nvrtc_broken.c -- a library that claims to be NVRTC and lacks nearly
 * everything; as NVRTC before 11.2 lacks the list of architectures. */
__attribute__((visibility("default"))) int nvrtcVersion(int *major, int *minor);

int nvrtcVersion(int *major, int *minor)
{
  *major = 10;
  *minor = 2;
  return 0;
}
