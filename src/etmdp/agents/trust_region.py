"""The machinery of TRPO and CPO: flat parameters, Fisher products, conjugate gradients, a line search."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from etmdp.agents.gaussian import GaussianActor, gaussian_kl

Product = Callable[[Tensor], Tensor]


def flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


@torch.no_grad()
def set_flat(parameters: Sequence[nn.Parameter], vector: Tensor) -> None:
    """Writes in place: views of the parameters stay views."""
    start = 0
    for parameter in parameters:
        parameter.copy_(vector[start : start + parameter.numel()].view_as(parameter))
        start += parameter.numel()


def flat_gradient(value: Tensor, parameters: Sequence[nn.Parameter]) -> Tensor:
    return flat(torch.autograd.grad(value, parameters))


def fisher_product(actor: GaussianActor, observation: Tensor, damping: float) -> Product:
    """v -> (F + damping I) v, with F the policy's mean Fisher matrix over the observations.

    F is the second derivative of KL(old || new) at the old policy, so it is one more gradient of that KL's
    gradient, whose graph is kept for all products. Damping makes it invertible where F is singular: a network
    has directions in which its policy does not change.
    """
    parameters = list(actor.parameters())
    mean = actor(observation)
    kl = gaussian_kl(mean.detach(), actor.log_std.detach(), mean, actor.log_std)
    gradient = flat(torch.autograd.grad(kl, parameters, create_graph=True))

    def product(vector: Tensor) -> Tensor:
        return flat(torch.autograd.grad(gradient @ vector, parameters, retain_graph=True)) + damping * vector

    return product


def conjugate_gradient(product: Product, b: Tensor, iterations: int, tolerance: float = 1e-10) -> Tensor:
    """Solves A x = b approximately for a positive definite A given as a product.

    Stops early once the squared residual is below `tolerance` times that of x = 0.
    """
    x, residual = torch.zeros_like(b), b.clone()
    direction = b.clone()
    error = residual @ residual
    enough = tolerance * error
    for _ in range(iterations):
        if error <= enough:
            break
        image = product(direction)
        rate = error / (direction @ image)
        x += rate * direction
        residual -= rate * image
        error, last_error = residual @ residual, error
        direction = residual + (error / last_error) * direction
    return x


def line_search(
    parameters: Sequence[nn.Parameter],
    step: Tensor,
    acceptable: Callable[[], bool],
    trials: int,
    shrink: float = 0.8,
) -> bool:
    """Takes the longest of `trials` ever shorter steps after which `acceptable` holds, or none at all."""
    start = flat([p.detach() for p in parameters])
    for trial in range(trials):
        set_flat(parameters, start + shrink**trial * step)
        if acceptable():
            return True
    set_flat(parameters, start)
    return False
