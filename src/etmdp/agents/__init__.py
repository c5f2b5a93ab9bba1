"""The learning algorithms, one file each. `ALGORITHMS` maps the names of params.yaml to classes."""

from etmdp.agents.context_td3 import ContextTD3
from etmdp.agents.cpo import CPO
from etmdp.agents.policy import Policy, load_policy
from etmdp.agents.ppo import PPO
from etmdp.agents.ppo_lagrangian import PPOLagrangian
from etmdp.agents.td3 import TD3
from etmdp.agents.trpo import TRPO

ALGORITHMS = {
    "td3": TD3,
    "context_td3": ContextTD3,
    "ppo": PPO,
    "ppo_lagrangian": PPOLagrangian,
    "trpo": TRPO,
    "cpo": CPO,
}

__all__ = ["ALGORITHMS", "CPO", "PPO", "TD3", "TRPO", "ContextTD3", "PPOLagrangian", "Policy", "load_policy"]
