"""The element-wise work of `etmdp.agents.fast_update`, compiled by numba; products of matrices are torch's.

Signatures are given, so that what cannot be compiled fails when this module is imported, not in a training.
Constants are float32: a plain 0.5 would turn the arithmetic into float64. Conditions are written so that a
NaN passes through, as in torch, and shows up in the losses.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numba import njit

# Sums may be reordered, which vectorises them; NaN and infinity keep their meaning.
_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}

ZERO, ONE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
BETA_1, BETA_2, EPSILON = 0.9, 0.999, np.float32(1e-8)  # Adam's, as torch.optim.Adam has them
NEW_1, KEEP_2, NEW_2 = np.float32(1 - BETA_1), np.float32(BETA_2), np.float32(1 - BETA_2)


def _lambert(depth: int) -> list[list[np.float32]]:
    """Lambert's fraction tanh x = x / (1 + x^2 / (3 + x^2 / (5 + ...))), as two polynomials in x^2."""
    upper, lower = [Fraction(1)], [Fraction(2 * depth - 1)]
    for odd in range(2 * depth - 3, 0, -2):
        below = [odd * c for c in lower] + [Fraction(0)] * (len(upper) + 1 - len(lower))
        for power, c in enumerate(upper):
            below[power + 1] += c
        upper, lower = lower, below
    return [[np.float32(float(c / lower[0])) for c in polynomial] for polynomial in (upper, lower)]


# At depth 13 the relative error is below 4e-8 up to 9, from where tanh rounds to 1; all terms are positive,
# so nothing cancels.
(P0, P1, P2, P3, P4, P5, P6), (Q0, Q1, Q2, Q3, Q4, Q5, Q6) = _lambert(13)
TANH_END = np.float32(9)


@njit("float32(float32)", inline="always", **_OPTIONS)
def tanh(x):
    x = TANH_END if x > TANH_END else x
    x = -TANH_END if x < -TANH_END else x
    y = x * x
    upper = P0 + y * (P1 + y * (P2 + y * (P3 + y * (P4 + y * (P5 + y * P6)))))
    lower = Q0 + y * (Q1 + y * (Q2 + y * (Q3 + y * (Q4 + y * (Q5 + y * Q6)))))
    t = x * upper / lower
    t = ONE if t > ONE else t  # rounding may exceed 1, and 1 - t^2 must not be negative
    return -ONE if t < -ONE else t


@njit("float32(float32)", inline="always", **_OPTIONS)
def sigmoid(x):
    return HALF + HALF * tanh(HALF * x)


@njit("void(float32[:,:], float32[:,:], float32[:,:], float32[:,::1])", **_OPTIONS)
def join(first, second, third, out):
    """Columns side by side."""
    middle, last = first.shape[1], first.shape[1] + second.shape[1]
    for i in range(out.shape[0]):
        for j in range(first.shape[1]):
            out[i, j] = first[i, j]
        for j in range(second.shape[1]):
            out[i, middle + j] = second[i, j]
        for j in range(third.shape[1]):
            out[i, last + j] = third[i, j]


@njit("void(float32[:,::1], float32[::1])", **_OPTIONS)
def bias_relu(x, bias):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y = x[i, j] + bias[j]
            x[i, j] = ZERO if y <= ZERO else y


@njit("void(float32[:,::1], float32[:,::1], float32[::1])", **_OPTIONS)
def relu_backward(gradient, activation, bias_gradient):
    """In place; the bias's gradient is the sum over the batch."""
    bias_gradient[:] = ZERO
    for i in range(gradient.shape[0]):
        for j in range(gradient.shape[1]):
            g = ZERO if activation[i, j] <= ZERO else gradient[i, j]
            gradient[i, j] = g
            bias_gradient[j] += g


@njit("void(float32[:,:,::1], float32[:,::1], float32[:,::1], float32[::1], float32[:,::1])", **_OPTIONS)
def critic_head(hidden, bias, weight, head_bias, q):
    """The second layer's bias and ReLU, in place, and the last layer, for each critic."""
    for c in range(hidden.shape[0]):
        for i in range(hidden.shape[1]):
            total = ZERO
            for j in range(hidden.shape[2]):
                y = hidden[c, i, j] + bias[c, j]
                y = ZERO if y <= ZERO else y
                hidden[c, i, j] = y
                total += y * weight[c, j]
            q[c, i] = total + head_bias[c]


@njit(
    "void(float32[:,:,::1], float32[:,::1], float32[:,::1], float32[:,:,::1],"
    "float32[:,::1], float32[::1], float32[:,::1])",
    **_OPTIONS,
)
def critic_head_backward(
    hidden, weight, q_gradient, gradient, weight_gradient, head_bias_gradient, bias_gradient
):
    """From the gradient of q to that before the second ReLU, and of the parameters of `critic_head`."""
    weight_gradient[:] = ZERO
    bias_gradient[:] = ZERO
    for c in range(hidden.shape[0]):
        total = ZERO
        for i in range(hidden.shape[1]):
            slope = q_gradient[c, i]
            total += slope
            for j in range(hidden.shape[2]):
                h = hidden[c, i, j]
                g = ZERO if h <= ZERO else slope * weight[c, j]
                gradient[c, i, j] = g
                bias_gradient[c, j] += g
                weight_gradient[c, j] += slope * h
        head_bias_gradient[c] = total


@njit(
    "void(float32[:,::1], float32[:,::1], float32[:,:], float32[:,:], float32, float32[:,::1], float32[::1])",
    **_OPTIONS,
)
def td_error(q, q_next, reward, live, discount, q_gradient, losses):
    """The critics' loss, added to losses[0], and its gradient."""
    size = q.shape[1]
    scale = ONE / np.float32(size)
    loss = ZERO
    for i in range(size):
        first, second = q_next[0, i], q_next[1, i]
        smaller = first if first <= second or first != first else second
        y = reward[i, 0] + discount * live[i, 0] * smaller
        for c in range(2):
            error = q[c, i] - y
            loss += error * error
            q_gradient[c, i] = scale * (error + error)
    losses[0] += scale * loss


@njit("void(float32[:,::1], float32[::1])", **_OPTIONS)
def actor_loss(q, losses):
    """Minus the mean of q, added to losses[1]."""
    total = ZERO
    for i in range(q.shape[1]):
        total += q[0, i]
    losses[1] -= total / np.float32(q.shape[1])


@njit("void(float32[:,::1], float32[::1])", **_OPTIONS)
def action(x, bias):
    """tanh(x + bias), in place."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = tanh(x[i, j] + bias[j])


@njit("void(float32[:,::1], float32[:,::1], float32, float32)", **_OPTIONS)
def smooth(x, noise, scale, limit):
    """clip(x + clip(scale noise, -limit, limit), -1, 1), in place."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            e = scale * noise[i, j]
            e = limit if e > limit else e
            e = -limit if e < -limit else e
            y = x[i, j] + e
            y = ONE if y > ONE else y
            x[i, j] = -ONE if y < -ONE else y


@njit("void(float32[:,::1], float32[:,::1], float32[::1])", **_OPTIONS)
def action_backward(gradient, x, bias_gradient):
    """In place, through tanh; x is its result."""
    bias_gradient[:] = ZERO
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            g = gradient[i, j] * (ONE - x[i, j] * x[i, j])
            gradient[i, j] = g
            bias_gradient[j] += g


# The GRU keeps features in rows and, in columns, the batch of step 0, of step 1, ...: loops over the batch,
# which is longer than the number of features, vectorise better, and a bias is one number per loop. The rows
# of feature j: reset j, update size + j, candidate 2 size + j. Block t of `hidden`: the state before step t.


@njit(
    "void(float32[:,::1], float32[:,::1], float32[::1], float32[::1], float32[:,::1], int64, int64)",
    **_OPTIONS,
)
def gru_forward(inputs, states, input_bias, state_bias, hidden, begin, batch):
    """One step. `inputs` become the gates' values; the candidate rows of `states` get their bias."""
    size = hidden.shape[0]
    end = begin + batch
    for j in range(size):
        reset_bias = input_bias[j] + state_bias[j]
        update_bias = input_bias[size + j] + state_bias[size + j]
        candidate_bias, inner_bias = input_bias[2 * size + j], state_bias[2 * size + j]
        x_r, x_z, x_n = inputs[j, begin:end], inputs[size + j, begin:end], inputs[2 * size + j, begin:end]
        s_r, s_z, s_n = states[j, begin:end], states[size + j, begin:end], states[2 * size + j, begin:end]
        before, after = hidden[j, begin:end], hidden[j, end : end + batch]
        for i in range(batch):
            r = sigmoid(x_r[i] + s_r[i] + reset_bias)
            z = sigmoid(x_z[i] + s_z[i] + update_bias)
            inner = s_n[i] + inner_bias
            n = tanh(x_n[i] + candidate_bias + r * inner)
            x_r[i], x_z[i], x_n[i], s_n[i] = r, z, n, inner
            after[i] = n + z * (before[i] - n)


@njit(
    "void(float32[:,::1], float32[:,::1], float32[:,::1], float32[:,::1],"
    "float32[::1], float32[::1], int64, int64)",
    **_OPTIONS,
)
def gru_backward(inputs, states, hidden, gradient, input_bias_gradient, state_bias_gradient, begin, batch):
    """One step back. `inputs` and `states` become their gradients; `gradient` keeps what z lets through."""
    size = hidden.shape[0]
    end = begin + batch
    for j in range(size):
        x_r, x_z, x_n = inputs[j, begin:end], inputs[size + j, begin:end], inputs[2 * size + j, begin:end]
        s_r, s_z, s_n = states[j, begin:end], states[size + j, begin:end], states[2 * size + j, begin:end]
        before, g = hidden[j, begin:end], gradient[j]
        sum_r, sum_z, sum_n, sum_inner = ZERO, ZERO, ZERO, ZERO
        for i in range(batch):
            r, z, n, dh = x_r[i], x_z[i], x_n[i], g[i]
            d_n = dh * (ONE - z) * (ONE - n * n)
            d_z = dh * (before[i] - n) * z * (ONE - z)
            d_r = d_n * s_n[i] * r * (ONE - r)
            d_inner = d_n * r
            x_r[i], x_z[i], x_n[i] = d_r, d_z, d_n
            s_r[i], s_z[i], s_n[i] = d_r, d_z, d_inner
            g[i] = dh * z
            sum_r += d_r
            sum_z += d_z
            sum_n += d_n
            sum_inner += d_inner
        for row, total, inner in (
            (j, sum_r, sum_r),
            (size + j, sum_z, sum_z),
            (2 * size + j, sum_n, sum_inner),
        ):
            input_bias_gradient[row] += total
            state_bias_gradient[row] += inner


@njit("void(float32[:,::1], float32[::1], float64, float32)", **_OPTIONS)
def adam(flat, step, learning_rate, target_rate):
    """One step on rows weights, targets, gradients, first and second moments; targets if their rate > 0."""
    weights, targets, gradients, first, second = flat[0], flat[1], flat[2], flat[3], flat[4]
    step[0] += ONE
    rate = np.float32(learning_rate / (1.0 - BETA_1 ** np.float64(step[0])))
    correction = np.float32(1.0 / np.sqrt(1.0 - BETA_2 ** np.float64(step[0])))
    for i in range(weights.size):
        g = gradients[i]
        m = first[i] + NEW_1 * (g - first[i])
        v = KEEP_2 * second[i] + NEW_2 * g * g
        first[i], second[i] = m, v
        weights[i] -= rate * m / (np.sqrt(v) * correction + EPSILON)
    if target_rate > ZERO:
        for i in range(weights.size):
            targets[i] += target_rate * (weights[i] - targets[i])
