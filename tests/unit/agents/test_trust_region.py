"""Fisher products, conjugate gradients and the line search, against explicit linear algebra."""

import numpy as np
import torch

from etmdp.agents.gaussian import GaussianActor
from etmdp.agents.trust_region import (
    conjugate_gradient,
    fisher_product,
    flat,
    flat_gradient,
    line_search,
    set_flat,
)


def make_actor():
    torch.manual_seed(1)
    actor = GaussianActor(3, 2, [5], -0.3)
    torch.nn.init.normal_(actor.layers[-1].weight)
    return actor.double()


def test_fisher_product_is_the_mean_outer_product_of_scores():
    """E[score score'] from its definition: the expectation over a Gaussian action, written out."""
    actor = make_actor()
    parameters = list(actor.parameters())
    observation = torch.randn(20, 3, dtype=torch.float64)
    size = sum(p.numel() for p in parameters)
    matrix = torch.zeros(size, size, dtype=torch.float64)
    # Gauss-Hermite nodes integrate the scores' products, polynomials of degree 4 in the action, exactly.
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    weights = weights / weights.sum()
    for row in observation:
        for z0, w0 in zip(nodes, weights, strict=True):
            for z1, w1 in zip(nodes, weights, strict=True):
                mean = actor(row[None])
                action = (mean + actor.log_std.exp() * torch.tensor([z0, z1])).detach()
                score = flat_gradient(actor.log_density(mean, action).sum(), parameters)
                matrix += w0 * w1 * torch.outer(score, score) / len(observation)
    product = fisher_product(actor, observation, damping=0.1)
    for _ in range(5):
        vector = torch.randn(size, dtype=torch.float64)
        torch.testing.assert_close(product(vector), matrix @ vector + 0.1 * vector)


def test_damping_makes_a_singular_fisher_matrix_solvable():
    actor = make_actor()
    observation = torch.zeros(4, 3, dtype=torch.float64)  # the first layer's weights change nothing here
    b = torch.randn(sum(p.numel() for p in actor.parameters()), dtype=torch.float64)
    product = fisher_product(actor, observation, damping=0.1)
    x = conjugate_gradient(product, b, 50)
    torch.testing.assert_close(product(x), b, atol=1e-4, rtol=1e-4)


def test_conjugate_gradient_agrees_with_a_solver():
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(12, 12, generator=generator, dtype=torch.float64)
    matrix = root @ root.T + 0.5 * torch.eye(12, dtype=torch.float64)
    b = torch.randn(12, generator=generator, dtype=torch.float64)
    x = conjugate_gradient(lambda v: matrix @ v, b, 12, tolerance=0.0)
    torch.testing.assert_close(x, torch.linalg.solve(matrix, b), rtol=1e-5, atol=1e-6)
    assert conjugate_gradient(lambda v: matrix @ v, 0 * b, 12).tolist() == [0.0] * 12


def test_flat_parameters_are_written_in_place():
    actor = make_actor()
    parameters = list(actor.parameters())
    view = actor.layers[0].weight.detach().numpy()
    vector = torch.arange(sum(p.numel() for p in parameters), dtype=torch.float64)
    set_flat(parameters, vector)
    assert flat([p.detach() for p in parameters]).equal(vector)
    assert view.ravel().tolist() == actor.layers[0].weight.flatten().tolist()


def test_line_search_takes_the_longest_acceptable_step_or_none():
    parameter = torch.nn.Parameter(torch.zeros(1))
    step = torch.ones(1)
    assert line_search([parameter], step, lambda: parameter.item() <= 0.6, trials=10)
    assert parameter.item() == np.float32(0.8**3)
    assert not line_search([parameter], step, lambda: False, trials=10)
    assert parameter.item() == np.float32(0.8**3)
