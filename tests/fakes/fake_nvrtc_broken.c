/* fake_nvrtc_broken.c -- a library that claims to be NVRTC but lacks nearly
 * every function. Like NVRTC before 11.2, it lacks the list of architectures.
 */
__attribute__((visibility("default"))) int nvrtcVersion(int *major, int *minor);

int nvrtcVersion(int *major, int *minor)
{
  *major = 10;
  *minor = 2;
  return 0;
}
