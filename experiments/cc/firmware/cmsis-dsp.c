/* Signal processing: spectra, filters, matrices and statistics of a signal that is computed. */

#include <stdio.h>

#include "arm_math.h"

enum { LENGTH = 256, TAPS = 24, SIDE = 6 };

static float signal[LENGTH], spectrum[LENGTH], magnitudes[LENGTH / 2], filtered[LENGTH];
static q15_t fixed[LENGTH], fixed_out[LENGTH];
static q31_t wide[LENGTH], wide_out[LENGTH];

static unsigned sum_of(const void *data, unsigned n) {
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) sum = sum * 31 + ((const unsigned char *)data)[i];
    return sum;
}

static void spectra(void) {
    arm_rfft_fast_instance_f32 rfft;
    arm_rfft_fast_init_256_f32(&rfft);
    arm_rfft_fast_f32(&rfft, signal, spectrum, 0);
    arm_cmplx_mag_f32(spectrum, magnitudes, LENGTH / 2);
    float most;
    uint32_t where;
    arm_max_f32(magnitudes + 1, LENGTH / 2 - 1, &most, &where);
    printf("spectrum: %u %ld\n", (unsigned)where + 1, (long)(most * 1000));
    static q15_t bins[2 * LENGTH];
    arm_rfft_instance_q15 rfft15;
    arm_rfft_init_256_q15(&rfft15, 0, 1);
    arm_rfft_q15(&rfft15, fixed_out, bins);
    printf("spectrum of q15: %u\n", sum_of(bins, LENGTH));
}

static void filters(void) {
    static float taps[TAPS], state[TAPS + LENGTH], cascade_state[8];
    static q15_t taps15[TAPS], state15[TAPS + LENGTH];
    static q31_t taps31[TAPS], state31[TAPS + LENGTH];
    static const float sections[10] = {0.2f, 0.4f, 0.2f, 0.3f, -0.2f, 0.5f, 0.1f, 0.5f, 0.1f, -0.3f};
    for (int i = 0; i < TAPS; i++) taps[i] = arm_sin_f32(0.3f * (float)i) / TAPS;
    arm_float_to_q15(taps, taps15, TAPS);
    arm_float_to_q31(taps, taps31, TAPS);
    arm_fir_instance_f32 fir;
    arm_fir_init_f32(&fir, TAPS, taps, state, LENGTH);
    arm_fir_f32(&fir, signal, filtered, LENGTH);
    arm_biquad_casd_df1_inst_f32 biquad;
    arm_biquad_cascade_df1_init_f32(&biquad, 2, sections, cascade_state);
    arm_biquad_cascade_df1_f32(&biquad, filtered, filtered, LENGTH);
    arm_fir_instance_q15 fir15;
    arm_fir_init_q15(&fir15, TAPS, taps15, state15, LENGTH);
    arm_fir_q15(&fir15, fixed, fixed_out, LENGTH);
    arm_fir_instance_q31 fir31;
    arm_fir_init_q31(&fir31, TAPS, taps31, state31, LENGTH);
    arm_fir_q31(&fir31, wide, wide_out, LENGTH);
    float mean, deviation;
    arm_mean_f32(filtered, LENGTH, &mean);
    arm_std_f32(filtered, LENGTH, &deviation);
    printf("filtered: %ld %ld\n", (long)(mean * 1e6f), (long)(deviation * 1e6f));
    printf("filtered by q15, q31: %u %u\n", sum_of(fixed_out, sizeof fixed_out), sum_of(wide_out, sizeof wide_out));
}

static int matrices(void) {
    static float values[SIDE * SIDE], inverse[SIDE * SIDE], copy[SIDE * SIDE], product[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) values[i] = copy[i] = arm_cos_f32((float)(i * i)) + (i % 7 == 0 ? 3 : 0);
    arm_matrix_instance_f32 a = {SIDE, SIDE, values}, b = {SIDE, SIDE, inverse};
    arm_matrix_instance_f32 c = {SIDE, SIDE, copy}, d = {SIDE, SIDE, product};
    if (arm_mat_inverse_f32(&a, &b) != ARM_MATH_SUCCESS) return 1;
    arm_mat_mult_f32(&c, &b, &d);
    float worst = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        float off = product[i] - (i % (SIDE + 1) == 0 ? 1 : 0);
        worst = off > worst ? off : -off > worst ? -off : worst;
    }
    printf("inverse: %s\n", worst < 1e-3f ? "right" : "wrong");
    return worst >= 1e-3f;
}

int main(void) {
    for (int i = 0; i < LENGTH; i++)
        signal[i] = 0.5f * arm_sin_f32(0.49087385f * (float)i) + 0.2f * arm_cos_f32(1.9634954f * (float)i);
    arm_float_to_q15(signal, fixed, LENGTH);
    arm_float_to_q31(signal, wide, LENGTH);
    filters();
    spectra();
    arm_pid_instance_f32 pid = {.Kp = 0.7f, .Ki = 0.1f, .Kd = 0.05f};
    arm_pid_init_f32(&pid, 1);
    float at = 0;
    for (int i = 0; i < 200; i++) at += 0.1f * arm_pid_f32(&pid, 1.0f - at);
    printf("controlled: %ld\n", (long)(at * 1000));
    return matrices();
}
