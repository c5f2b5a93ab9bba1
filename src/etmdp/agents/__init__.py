"""The learning algorithms, one file each. `ALGORITHMS` maps the names of params.yaml to classes."""

from etmdp.agents.context_td3 import ContextTD3
from etmdp.agents.policy import Policy, load_policy
from etmdp.agents.td3 import TD3

ALGORITHMS = {"td3": TD3, "context_td3": ContextTD3}

__all__ = ["ALGORITHMS", "TD3", "ContextTD3", "Policy", "load_policy"]
