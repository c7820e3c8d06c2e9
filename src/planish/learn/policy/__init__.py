"""Policies: what gives probabilities of the next step, how they are kept, and how they are learnt."""

from planish.learn.policy.composed import ComposedPolicy
from planish.learn.policy.language_model import AnsweringPolicy
from planish.learn.policy.listed import ListPolicy, policy_of
from planish.learn.policy.named import AUTO, SEEDS, chances, policy_named
from planish.learn.policy.network import KINDS, Shape
from planish.learn.policy.network_policy import NetworkPolicy
from planish.learn.policy.policy_folder import places, policies_folder, policy_for
from planish.learn.policy.saved import SavedPolicy, load_policy, write_policy
from planish.learn.policy.written import WritingPolicy

__all__ = [
    "AUTO",
    "KINDS",
    "SEEDS",
    "AnsweringPolicy",
    "ComposedPolicy",
    "ListPolicy",
    "NetworkPolicy",
    "SavedPolicy",
    "Shape",
    "WritingPolicy",
    "chances",
    "load_policy",
    "places",
    "policies_folder",
    "policy_for",
    "policy_named",
    "policy_of",
    "write_policy",
]
