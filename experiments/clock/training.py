"""Programs that lists for hot functions are chosen by: none of them is measured in any table of results.

Numerical code and others from Debian's source packages, each called by a `main` of ours, with one argument
that says what is computed and one that says how often.
"""

from __future__ import annotations

from programs import Program

_GSL = r"""
#include <stdio.h>
#include <stdlib.h>
#include <gsl/gsl_cblas.h>
#define N 220
#define ROWS CblasRowMajor
#define PLAIN CblasNoTrans
static double a[N * N], b[N * N], c[N * N];
int main(int count, char **words) {
  (void)count;
  int what = words[1][0], rounds = atoi(words[2]);
  for (int i = 0; i < N * N; i++) {
    a[i] = i * 37 % 101 / 101.0 + (i % (N + 1) == 0) * N, b[i] = i * 53 % 97 / 97.0, c[i] = i % 13;
  }
  for (int r = 0; r < rounds; r++) {
    if (what == 'g') cblas_dgemm(ROWS, PLAIN, PLAIN, N, N, N, .5, a, N, b, N, .1, c, N);
    if (what == 's') cblas_dsyrk(ROWS, CblasUpper, PLAIN, N, N, .5, a, N, .1, c, N);
    if (what == 't') cblas_dtrsm(ROWS, CblasLeft, CblasUpper, PLAIN, CblasNonUnit, N, N, 1, a, N, c, N);
    if (what == 'm') cblas_dsymm(ROWS, CblasRight, CblasUpper, N, N, .01, a, N, b, N, .1, c, N);
    if (what == 'v') for (int i = 0; i < 50; i++) {
      cblas_dgemv(ROWS, CblasTrans, N, N, .01, a, N, b, 1, .1, c, 1);
      cblas_dgemv(ROWS, PLAIN, N, N, .01, a, N, b, 1, .1, c + N, 1);
      cblas_dger(ROWS, N, N, 1e-3, c, 1, b, 1, a, N);
    }
    if (what == 'b') for (int i = 0; i < 200; i++) {
      cblas_dgbmv(ROWS, PLAIN, N, N, 8, 8, .01, a, N, b, 1, .1, c, 1);
      cblas_dsymv(ROWS, CblasUpper, N, .01, a, N, b, 1, .1, c + N, 1);
    }
  }
  double sum = 0;
  for (int i = 0; i < N * N; i++) sum = sum * .75 + c[i];
  printf("%.9g\n", sum);
  return 0;
}
void cblas_xerbla(int p, const char *rout, const char *form, ...) {
  printf("%d %s %s\n", p, rout, form);
  exit(1);
}
"""
_FFT = r"""
#include <stdio.h>
#include <stdlib.h>
#include "kiss_fft.h"
#include "kiss_fftr.h"
static kiss_fft_cpx in[3600], out[3600];
static float wave[4096];
int main(int count, char **words) {
  (void)count;
  int rounds = atoi(words[2]);
  double sum = 0;
  kiss_fft_cfg one = kiss_fft_alloc(3600, 0, 0, 0), two = kiss_fft_alloc(2187, 0, 0, 0);
  kiss_fftr_cfg real = kiss_fftr_alloc(4096, 0, 0, 0);
  for (int i = 0; i < 3600; i++) in[i].r = i * 37 % 101 / 101.f, in[i].i = i * 53 % 97 / 97.f;
  for (int i = 0; i < 4096; i++) wave[i] = i * 29 % 103 / 103.f;
  for (int r = 0; r < rounds; r++) {
    kiss_fft(one, in, out), sum += out[r % 3600].r;
    kiss_fft(two, in, out), sum += out[r % 2187].i;
    kiss_fftr(real, wave, out), sum += out[r % 2048].r;
  }
  printf("%.5g\n", sum);
  return 0;
}
"""
_SPEEX = r"""
#include <stdio.h>
#include <stdlib.h>
#include "speex/speex_resampler.h"
#include "speex/speex_preprocess.h"
static float in[4800], out[9600];
static short frame[320];
int main(int count, char **words) {
  (void)count;
  int rounds = atoi(words[2]), error = 0;
  double sum = 0;
  SpeexResamplerState *state = speex_resampler_init(1, 44100, 48000, 6, &error);
  SpeexPreprocessState *clean = speex_preprocess_state_init(320, 16000);
  for (int i = 0; i < 4800; i++) in[i] = i * 37 % 1001 * 20.f - 10000;
  for (int r = 0; r < rounds; r++) {
    unsigned given = 4410, made = 9600;
    speex_resampler_process_float(state, 0, in, &given, out, &made);
    for (int i = 0; i < 320; i++) frame[i] = in[(i + r * 7) % 4800];
    sum += out[r % 4000] + speex_preprocess_run(clean, frame) + frame[r % 320];
  }
  printf("%.4g\n", sum);
  return 0;
}
"""
_SPARSE = r"""
#include <stdio.h>
#include <stdlib.h>
#include "cs.h"
#define N 1600
static double x[N * 2];
int main(int count, char **words) {
  (void)count;
  int what = words[1][0], rounds = atoi(words[2]);
  double sum = 0;
  cs *t = cs_spalloc(N, N, 10 * N, 1, 1);
  for (int i = 0; i < N; i++) {
    int near[4] = {i - 40, i + 40, i - 1, i + 1};
    cs_entry(t, i, i, 5 + i % 3);
    for (int k = 0; k < 4; k++) if (near[k] >= 0 && near[k] < N) cs_entry(t, i, near[k], -1);
  }
  cs *a = cs_compress(t);
  for (int r = 0; r < rounds; r++) {
    for (int i = 0; i < N; i++) x[i] = i % 17;
    if (what == 'l') cs_lusol(1, a, x, .1);
    if (what == 'c') cs_cholsol(1, a, x);
    if (what == 'q') cs_qrsol(3, a, x);
    if (what == 'm') {
      cs *p = cs_multiply(a, a), *d = cs_transpose(p, 1), *e = cs_add(p, d, 1, .5);
      x[0] = cs_norm(e);
      cs_spfree(p), cs_spfree(d), cs_spfree(e);
    }
    for (int i = 0; i < N; i++) sum += x[i];
  }
  printf("%.6g\n", sum);
  return 0;
}
"""
_ERFA = r"""
#include <stdio.h>
#include <stdlib.h>
#include "erfa.h"
int main(int count, char **words) {
  (void)count;
  int rounds = atoi(words[2]);
  double sum = 0;
  for (int r = 0; r < rounds; r++) {
    double x, y, psi, eps, place[2][3], heart[2][3];
    eraXy06(2450000.5, r * 7, &x, &y);
    eraNut00a(2450000.5, r * 7, &psi, &eps);
    eraEpv00(2450000.5, r * 7, heart, place);
    eraMoon98(2450000.5, r * 7, heart);
    sum += x + y + psi + eps + place[0][1] + heart[1][2] + eraDtdb(2450000.5, r, .3, .2, 1, 2);
  }
  printf("%.9g\n", sum);
  return 0;
}
"""
_TOP = ("math", "inline", "machine", "types", "precision", "pow_int", "minmax", "nan")
_HEADERS = ("cblas/gsl_cblas.h", "sys/gsl_sys.h", *(f"gsl_{name}.h" for name in _TOP))
_BLAS = "dgemm dsyrk dtrsm dsymm dgemv dger dgbmv dsymv"


def _gsl(what: str, rounds: int) -> Program:
    # The library's build makes links to its headers.
    made = {f"gsl/{name.rpartition('/')[2]}": f'#include "../{name}"\n' for name in _HEADERS}
    files = " ".join((*(f"cblas/{name}.c" for name in _BLAS.split()), "planish_main.c"))
    return Program("gsl", files, f"./gsl {what} {rounds}", {**made, "planish_main.c": _GSL}, "-I. -Icblas")


def _sparse(what: str, rounds: int) -> Program:
    files = "CSparse/Source/*.c planish_main.c"
    run = f"./sparse {what} {rounds}"
    return Program("suitesparse", files, run, {"planish_main.c": _SPARSE}, "-ICSparse/Include -DNCOMPLEX")


TRAINING = (
    *(_gsl("g", 4), _gsl("s", 6), _gsl("t", 6), _gsl("m", 4), _gsl("v", 10), _gsl("b", 10)),
    Program(
        "kissfft",
        "kiss_fft.c kiss_fftr.c planish_main.c",
        "./fft x 120",
        {"planish_main.c": _FFT},
        "-I.",
    ),
    Program(
        "speexdsp",
        "libspeexdsp/resample.c libspeexdsp/preprocess.c libspeexdsp/filterbank.c libspeexdsp/fftwrap.c "
        "libspeexdsp/smallft.c libspeexdsp/mdf.c planish_main.c",
        "./speex x 60",
        {
            "planish_main.c": _SPEEX,
            "config.h": "#define FLOATING_POINT\n#define USE_SMALLFT\n#define EXPORT\n",
            "include/speex/speexdsp_config_types.h": "#include <stdint.h>\ntypedef int16_t spx_int16_t;\n"
            "typedef uint16_t spx_uint16_t;\ntypedef int32_t spx_int32_t;\ntypedef uint32_t spx_uint32_t;\n",
        },
        "-I. -Iinclude -Ilibspeexdsp -DHAVE_CONFIG_H",
    ),
    *(_sparse("l", 6), _sparse("q", 3), _sparse("m", 60)),
    Program(
        "erfa",
        "src/*.c !src/t_erfa_c.c !src/t_erfa_c_extra.c !src/erfaversion.c planish_main.c",
        "./erfa x 80",
        {"planish_main.c": _ERFA},
        "-Isrc",
    ),
    Program("zopfli", "src/zopfli/*.c", "./zopfli -c --i1 {small}"),
)
"""In the order in which the table has them."""
